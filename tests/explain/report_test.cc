#include "explain/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fovea {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Report, TextStaysText) {
  Report report("a <b> & \"c\"");
  report.heading("<script>alert(1)</script>");
  report.paragraph("</p><img src=x>");
  report.table({"<i>"}, {{"\"><script>"}, {"我喜欢食物"}});
  report.picture("<svg/>", "\" onload=\"x");
  report.link("a\"b.html", "<u>");
  const std::string html = report.html();
  EXPECT_THAT(html, Not(HasSubstr("<script>")));
  EXPECT_THAT(html, Not(HasSubstr("<img src=x>")));
  EXPECT_THAT(html, Not(HasSubstr("\" onload=\"")));
  EXPECT_THAT(html, HasSubstr("<title>a &lt;b&gt; &amp; &quot;c&quot;</title>"));
  EXPECT_THAT(html, HasSubstr("<td>我喜欢食物</td>"));
  EXPECT_THAT(html, HasSubstr("href=\"a&quot;b.html\""));
}

TEST(Report, HasTheHeaderOfTheOtherPages) {
  const std::string html = Report("positive", "han <1>").html();
  EXPECT_THAT(html, HasSubstr("<b>Fovea</b><span>where the model looks</span>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"model\">han &lt;1&gt;</span>"));
}

// RFC 4648's own examples, of each length modulo 3.
TEST(Report, PicturesAreCarriedAsBase64) {
  for (const auto& [bytes, text] :
       {std::pair{"foobar", "Zm9vYmFy\""}, {"fooba", "Zm9vYmE=\""}, {"foob", "Zm9vYg==\""}}) {
    Report report("");
    report.picture(bytes, "");
    EXPECT_THAT(report.html(), HasSubstr(std::string("base64,") + text));
  }
}

}  // namespace
}  // namespace fovea
