"""What both sides of the translation rows agree on: sizes, sentences, lengths. Mirrors src/bench/translation_work.cc."""

from dataclasses import dataclass

VOCABULARY, SPECIALS, END = 10_000, 4, 2
LENGTH = 24  # tokens of every translation


@dataclass
class Work:
    layers: int
    width: int
    hidden: int
    heads: int
    dropout: float
    sentences: int
    shortest: int
    longest: int
    vocabulary: int = VOCABULARY
    activation: str = "relu"

    def source_length(self, i):
        return self.shortest + i % (self.longest - self.shortest + 1)

    def target_length(self, i):
        return self.shortest + (7 * i + 3) % (self.longest - self.shortest + 1)


WORK = {
    "tiny": Work(4, 128, 256, 4, 0.3, 270, 8, 22),
    "base": Work(6, 512, 2048, 8, 0.1, 82, 18, 32),
    "marian": Work(6, 512, 2048, 8, 0.1, 82, 18, 32, 58_101, "swish"),  # the size of most OPUS-MT models
}
