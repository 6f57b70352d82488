// An overload set from lambdas, for std::visit: std::visit(Match{[](A&) {...}, [](B&) {...}}, variant).
#pragma once

namespace fovea {

template <class... Fs>
struct Match : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Match(Fs...) -> Match<Fs...>;

}  // namespace fovea
