"""page_browser_test.py PROGRAM MAKER CHROMIUM: opens pages of `fovea explain` and `fovea demo` as a person would.

MAKER DIR leaves a small model in DIR. With FOVEA_SHOTS=DIR, pictures of the page are left there to be looked at.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from browser import Browser

PROGRAM, MAKER, CHROMIUM = sys.argv[1:4]
ENGLISH = ("one two threefold four", "six five four three two one")
CHINESE = ("我 喜欢 食物", "one two 食物")
HOSTILE = ("</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1> \"'&lt; --> <!-- <script>",
           "<b>bold</b> ${window.hacked=1} `x` </title><script>window.hacked=1</script>")


class BrowserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="fovea-page-")
        cls.path = pathlib.Path(cls.folder.name)
        cls.make_pages()
        cls.browser = Browser(CHROMIUM)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def setUp(self):
        self.browser.resize(1200, 900)
        self.browser.scheme("light")

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [])

    def address(self):
        return self.browser.evaluate("Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")

    def shot(self, name):
        if "FOVEA_SHOTS" in os.environ:
            pathlib.Path(os.environ["FOVEA_SHOTS"], name + ".png").write_bytes(self.browser.screenshot())


class ExplainTest(BrowserTest):
    @classmethod
    def make_pages(cls):
        subprocess.run([MAKER, cls.path], check=True)
        cls.pages = {}
        for name, (model, (source, target)) in {"english": ("model", ENGLISH), "chinese": ("model", CHINESE),
                                                "hostile": ("model", HOSTILE), "rnn": ("rnn", CHINESE)}.items():
            for ending in ("html", "json"):
                subprocess.run([PROGRAM, "explain", cls.path / model, source, "--target", target,
                                "--out", cls.path / f"{name}.{ending}"], check=True, stdout=subprocess.DEVNULL)
            cls.pages[name] = (cls.path / f"{name}.html").as_uri()

    def open(self, name, fragment=""):
        self.browser.open(self.pages[name] + fragment)
        self.browser.wait("document.querySelector('#plot') !== null")

    def assert_number(self, wanted, delta):
        """The number shown, once the page has heard of the pointer."""
        shown = "Number(document.querySelector('#number')?.textContent)"
        try:
            self.browser.wait(f"Math.abs({shown} - {wanted}) <= {delta}", seconds=10)
        except RuntimeError:
            self.assertAlmostEqual(float(self.browser.evaluate(f"String({shown})")), wanted, delta=delta)

    def shades(self):
        return self.browser.evaluate(
            "[...document.querySelectorAll('.cell')].map(c => c.dataset.at + ' ' + c.getAttribute('fill-opacity')).join()")

    def weights(self, name, kind, layer, head):
        data = json.loads((self.path / f"{name}.json").read_text())
        kinds = {k["kind"]: k for k in data["kinds"]}
        return kinds[kind]["layers"][layer]["heads"][head]

    def merged(self, name):
        data = json.loads((self.path / f"{name}.json").read_text())
        weights = data["kinds"][0]["layers"][0]["heads"][0]
        rows, columns = data["target"], data["source"]
        merged = [[0] * len(columns["words"]) for _ in rows["words"]]
        for i, row in enumerate(weights):
            for j, weight in enumerate(row):
                merged[rows["word_of"][i]][columns["word_of"][j]] += weight / rows["word_of"].count(rows["word_of"][i])
        return merged

    def test_opens_without_complaint_and_without_a_network(self):
        self.open("english")
        self.assertEqual(self.browser.evaluate("document.querySelector('#source').textContent"), ENGLISH[0])
        self.assertEqual(self.browser.evaluate("document.querySelector('#target').textContent"), ENGLISH[1])
        self.assertEqual(self.browser.evaluate("document.title"), ENGLISH[0])
        for request in self.browser.requests():
            self.assertRegex(request, "^(file:|data:)")
        self.shot("map-light")

    def test_choosing_a_head_changes_the_map_and_the_address(self):
        self.open("english", "#kind=cross&layer=0&head=0&units=tokens")
        before = self.shades()
        self.browser.click("#heads [data-layer='1'][data-head='1']")
        self.assertNotEqual(self.shades(), before)
        self.assertEqual((self.address()["layer"], self.address()["head"]), ("1", "1"))
        self.browser.click("#heads [data-layer='rollout']")
        self.assertEqual(self.address()["layer"], "rollout")
        self.browser.click("[name=kind][value=encoder]")
        self.assertEqual(self.address()["kind"], "encoder")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('#plot text').length"),
                         2 * len(self.weights("english", "encoder", 0, 0)))

    def test_an_address_restores_what_it_was_taken_from(self):
        self.open("english")
        self.browser.click("[name=kind][value=decoder]")
        self.browser.click("[name=units][value=tokens]")
        self.browser.click("#heads [data-layer='0'][data-head='1']")
        self.browser.click("#plot .cell[data-at='2.1']")
        wanted, fragment = self.shades(), self.browser.evaluate("location.hash")
        number = self.browser.evaluate("document.querySelector('#number').textContent")
        self.assertIn("at=2.1", fragment)
        self.open("english", fragment)
        self.assertEqual(self.shades(), wanted)
        self.assertEqual(self.browser.evaluate("document.querySelector('#number').textContent"), number)
        self.assertEqual(self.browser.evaluate("document.querySelector('#heads [aria-checked=true]').title"), "layer 0, head 1")
        self.assertTrue(self.browser.evaluate("document.querySelector('[name=kind][value=decoder]').checked"))
        # And within an open page.
        self.browser.evaluate("location.hash = '#kind=cross&layer=1&head=average&view=lines'")
        self.browser.wait("document.querySelectorAll('#plot .link').length > 0")

    def test_an_address_that_means_nothing_gives_the_default(self):
        self.open("english", "#kind=nonsense&layer=99&head=-1&view=%22&units=<b>&at=7000.7000&sentence=5")
        self.assertEqual(self.browser.evaluate("document.querySelector('#heads [aria-checked=true]').title"),
                         "layer 0, average of heads")

    def test_hovering_shows_the_number(self):
        self.open("english", "#kind=cross&layer=1&head=0&units=tokens")
        for i, j in ((0, 0), (2, 1), (3, 3)):
            self.browser.hover(f"#plot .cell[data-at='{i}.{j}']")
            self.assert_number(self.weights("english", "cross", 1, 0)[i][j], 0.00056)
        self.browser.evaluate("document.querySelector('[name=view][value=lines]').click()")
        self.browser.hover("#plot .target-area[data-at='r1']")
        self.assert_number(max(self.weights("english", "cross", 1, 0)[1]), 0.00056)
        self.shot("lines-hover")

    def test_a_plot_is_drawn_once_and_stays_under_the_pointer(self):
        # The map is higher than the window, the lines are not: a scrollbar that goes must not move or redraw them.
        self.browser.resize(1200, 700)
        self.open("english", "#kind=cross&layer=1&head=0&units=tokens&view=map")
        higher = "document.documentElement.scrollHeight > document.documentElement.clientHeight"
        self.assertTrue(self.browser.evaluate(higher))
        frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))"
        self.browser.evaluate(frames)
        self.browser.evaluate(
            "window.drawn = 0; new MutationObserver(() => ++drawn).observe(document.querySelector('#frame'), {childList: true});"
            "document.querySelector('[name=view][value=lines]').click()")
        self.browser.hover("#plot .target-area[data-at='r1']")
        self.browser.evaluate(frames)
        self.assertFalse(self.browser.evaluate(higher))
        self.assertEqual(self.browser.evaluate("drawn"), 1)
        self.assert_number(max(self.weights("english", "cross", 1, 0)[1]), 0.00056)

    def test_words_sum_what_their_tokens_have(self):
        self.open("english", "#kind=cross&layer=0&head=0&units=words")
        rows = self.weights("english", "cross", 0, 0)
        line = json.loads((self.path / "english.json").read_text())["source"]
        self.assertGreater(len(line["tokens"]), len(line["words"]))
        word = line["words"].index("threefold")
        wanted = sum(weight for weight, of in zip(rows[0], line["word_of"]) if of == word)
        self.browser.hover(f"#plot .cell[data-at='0.{word}']")
        self.assert_number(wanted, 0.001)

    def test_the_keyboard_is_enough(self):
        self.open("english", "#kind=cross&layer=0&head=0&units=words")
        self.browser.evaluate("document.querySelector('#heads [aria-checked=true]').focus()")
        self.browser.press("ArrowRight")
        self.browser.press("ArrowDown")
        self.assertEqual((self.address()["layer"], self.address()["head"]), ("1", "1"))
        self.assertEqual(self.browser.evaluate("document.activeElement.title"), "layer 1, head 1")
        self.browser.evaluate("document.querySelector('#plot').focus()")
        for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowRight"):
            self.browser.press(key)
        self.assertEqual(self.address()["at"], "1.1")
        self.assertIn("looks at", self.browser.evaluate("document.querySelector('#readout').textContent"))
        self.browser.press("Escape")
        self.assertNotIn("at", self.address())
        self.browser.evaluate("document.querySelector('[name=view]:checked').focus()")
        self.browser.press("ArrowRight")
        self.assertEqual(self.address()["view"], "lines")
        self.assertEqual(self.browser.evaluate("document.activeElement.value"), "lines")
        self.browser.evaluate("document.querySelector('#plot').focus()")
        self.browser.press("ArrowRight")
        self.assertEqual(self.address()["at"], "r0")
        self.browser.press("ArrowUp")
        self.assertEqual(self.address()["at"], "c0")

    def test_hostile_text_is_inert(self):
        for fragment in ("", "#view=lines", "#kind=decoder&units=tokens"):
            self.open("hostile", fragment)
            self.assertEqual(self.browser.evaluate("typeof window.hacked"), "undefined")
            self.assertEqual(self.browser.evaluate("document.querySelectorAll('img, b:not(header b), script').length"), 2)
            self.assertEqual(self.browser.evaluate("document.querySelector('#source').textContent"), HOSTILE[0])
            self.assertEqual(self.browser.evaluate("document.querySelector('#target').textContent"), HOSTILE[1])
            self.assertEqual(self.browser.evaluate("document.title"), HOSTILE[0])
        self.shot("hostile")

    def test_chinese_is_rendered(self):
        self.open("chinese", "#units=words")
        boxes = self.browser.evaluate(
            "[...document.querySelectorAll('#plot text')].filter(t => t.textContent === '食物')"
            ".map(t => [t.getBBox().width, t.getBBox().height])")
        self.assertEqual(len(boxes), 2)
        for width, height in boxes:
            self.assertGreater(width, 20)
            self.assertGreater(height, 10)
        # Boxes for letters that no font has would all look the same.
        pixels = """(letter => {
          const canvas = document.createElement('canvas'), context = canvas.getContext('2d');
          context.font = '32px ' + getComputedStyle(document.body).fontFamily;
          context.fillText(letter, 4, 40);
          return [...context.getImageData(0, 0, 64, 64).data].join();
        })"""
        self.assertNotEqual(self.browser.evaluate(pixels + "('食')"), self.browser.evaluate(pixels + "('物')"))
        self.shot("chinese")

    def test_a_model_with_one_map_offers_no_choice_of_heads(self):
        self.open("rnn")
        self.assertTrue(self.browser.evaluate("document.querySelector('#chooser').hidden"))
        self.assertEqual(self.browser.evaluate("document.querySelector('#chooser').getBoundingClientRect().width"), 0)
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('[name=kind]').length"), 0)
        self.browser.hover("#plot .cell[data-at='1.0']")
        self.assert_number(self.merged("rnn")[1][0], 0.001)
        self.shot("rnn")

    def test_fits_a_narrow_window_and_both_schemes(self):
        for width in (360, 700, 1200):
            for view in ("map", "lines"):
                self.browser.resize(width, 900)
                self.open("english", "#view=" + view)
                self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), width)
                self.shot(f"{view}-{width}")
        self.browser.resize(1200, 900)
        luminance = "getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)[0]"
        self.assertGreater(self.browser.evaluate(luminance), 200)
        self.browser.scheme("dark")
        self.assertLess(self.browser.evaluate(luminance), 60)
        self.shot("lines-dark")


class ClassifierTest(BrowserTest):
    """Pages of text classifiers after two steps of training."""
    TEXT = "one two " + "w" * 400 + " 我喜欢食物 . three <b>four</b>"

    @classmethod
    def make_pages(cls):
        (cls.path / "train.tsv").write_text("good\tone two three\nbad\t我喜欢 食物 four\n" * 20)
        for model in ("lstm", "han", "transformer"):
            subprocess.run([PROGRAM, "train", "classify", "--preset", "tiny", "--model", model, "--steps", "2",
                            "--tokenizer", "bpe", "--vocabulary", "300", "--threads", "1", "--train", cls.path / "train.tsv", "--out",
                            cls.path / model], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            subprocess.run([PROGRAM, "explain", cls.path / model, cls.TEXT, "--out", cls.path / f"{model}.html"],
                           check=True, stdout=subprocess.DEVNULL)
        subprocess.run([PROGRAM, "explain", cls.path / "transformer", cls.TEXT, "--kind", "encoder",
                        "--out", cls.path / "heads.html"], check=True, stdout=subprocess.DEVNULL)

    def text(self, selector):
        return self.browser.evaluate(f"document.querySelector({selector!r}).textContent")

    def test_a_page_of_words_has_the_header_and_fits_a_narrow_window(self):
        for model in ("lstm", "han", "transformer"):
            for width in (360, 1200):
                self.browser.resize(width, 900)
                self.browser.open((self.path / f"{model}.html").as_uri())
                self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), width)
                self.shot(f"{model}-{width}")
            self.assertEqual(self.text("header b"), "Fovea")
            self.assertEqual(self.text("header .model"), model)
            self.assertIn("weight of a word in the text", self.text(".scale"))
            self.assertEqual("also carries the words around it" in self.text("body"), model != "transformer")

    def test_a_page_of_heads_has_a_text_and_no_translation(self):
        self.browser.open((self.path / "heads.html").as_uri())
        self.browser.wait("document.querySelector('#plot') !== null")
        self.assertEqual(self.text("#source-name"), "text")
        self.assertEqual(self.text("#source"), self.TEXT)
        for part in ("#target-name", "#target"):
            self.assertEqual(self.browser.evaluate(f"document.querySelector('{part}').getClientRects().length"), 0)
        for part in ("#note", "#controls", "#readout"):
            self.assertNotIn("translation", self.text(part))
        self.shot("heads")

    def test_a_long_word_is_cut_and_its_whole_is_shown_on_hover(self):
        for view in ("map", "lines"):
            self.browser.open((self.path / "heads.html").as_uri() + "#units=words&view=" + view)
            self.browser.wait("document.querySelector('#plot') !== null")
            long = self.browser.evaluate(
                "[...document.querySelectorAll('#plot text')].filter(t => t.textContent.includes('www'))"
                ".map(t => [t.getComputedTextLength(), t.querySelector('title')?.textContent])")
            self.assertEqual(len(long), 2)
            for width, title in long:
                self.assertLessEqual(width, 181)
                self.assertEqual(title, "w" * 400)
            self.shot("long-" + view)


class DemoTest(BrowserTest):
    """The pages that `fovea demo` leaves: after two steps they show nonsense, but all of it."""

    @classmethod
    def make_pages(cls):
        subprocess.run([PROGRAM, "demo", "--steps", "2", "--threads", "1", "--out", cls.path], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def sources(self):
        return (self.path / "data/test.zh").read_text().splitlines()[:5]

    def test_the_report_shows_its_pictures_and_fits_the_window(self):
        for width in (360, 1200):
            self.browser.resize(width, 900)
            self.browser.open((self.path / "index.html").as_uri())
            self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), width)
            self.shot(f"demo-{width}")
        pictures = self.browser.evaluate(
            "[...document.images].map(i => i.complete && i.naturalWidth > 100 && i.alt.length > 0)")
        self.assertEqual(pictures, [True] * 3)
        text = self.browser.evaluate("document.body.textContent")
        for part in ("Transformer", "without attention", *self.sources()):
            self.assertIn(part, text)
        for request in self.browser.requests():
            self.assertRegex(request, "^(file:|data:)")

    def test_the_report_leads_to_the_page_of_all_heads(self):
        self.browser.open((self.path / "index.html").as_uri())
        self.browser.click("a[href='attention.html']")
        self.browser.wait("location.href.endsWith('attention.html') && document.querySelector('#plot') !== null")

    def test_every_sentence_of_both_models_can_be_chosen(self):
        self.browser.open((self.path / "attention.html").as_uri())
        self.browser.wait("document.querySelector('#plot') !== null")
        sources = self.sources() * 2
        self.assertEqual(self.browser.evaluate("document.querySelector('[name=sentence]').length"), len(sources))
        for number in (1, 4, 7, 9, 0):
            self.browser.evaluate(f"(s => {{ s.value = '{number}'; s.dispatchEvent(new Event('change')); }})"
                                  "(document.querySelector('[name=sentence]'))")
            self.assertEqual(self.browser.evaluate("document.querySelector('#source').textContent"), sources[number])
            self.assertEqual(self.address()["sentence"], str(number))
            # The Transformer's sentences come first; a recurrent model has one map.
            self.assertEqual(self.browser.evaluate("document.querySelector('#chooser').hidden"), number >= 5)
        self.browser.open((self.path / "attention.html").as_uri() + "#sentence=6")
        self.browser.wait("document.querySelector('#plot') !== null")
        self.assertEqual(self.browser.evaluate("document.querySelector('[name=sentence]').value"), "6")
        self.assertEqual(self.browser.evaluate("document.querySelector('#source').textContent"), sources[6])
        self.shot("demo-attention")


if __name__ == "__main__":
    if shutil.which(CHROMIUM) is None:
        sys.exit(f"{CHROMIUM} is missing: `make test-page` installs it")
    unittest.main(argv=sys.argv[:1], verbosity=2)
