"""Golden token ids of BigBird's tokenizers: a SentencePiece model with all scores 0, no normalisation and BERT's marks
among its pieces, read by the SentencePiece library, and the tokenizer.json that transformers makes of such pieces.

Run with sentencepiece and transformers 5 from this folder: python make_big_bird_pieces.py
"""

import io
import json

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from transformers import BigBirdTokenizer

from make_wordpiece import TEXTS, WORDS, random_texts


def learn():
    corpus = [text for text in TEXTS if text.strip()] + [" ".join(WORDS)] * 5
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus), model_writer=model, vocab_size=420, model_type="unigram", pad_id=0, eos_id=1,
        bos_id=2, unk_id=3, pad_piece="<pad>", normalization_rule_name="identity", character_coverage=0.98,
        user_defined_symbols="[CLS],[SEP],[MASK]", hard_vocab_limit=False, minloglevel=2)
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    for piece in proto.pieces:
        piece.score = 0
    return proto


def main():
    proto = learn()
    with open("big_bird.model", "wb") as file:
        file.write(proto.SerializeToString())
    pieces = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    # Marks in a text are cut out before the library sees it; texts with them are left out here.
    texts = [text for text in TEXTS + list(random_texts(300)) if "[" not in text and "<" not in text]
    fast = BigBirdTokenizer(vocab=[(piece.piece, 0.0) for piece in proto.pieces])
    backend = json.loads(fast.backend_tokenizer.to_str())
    result = {
        "texts": texts,
        "ids": [pieces.encode(text) for text in texts],
        "fast": [fast(text, add_special_tokens=False)["input_ids"] for text in texts],
        "marked": fast("a quick fox")["input_ids"],
        "tokenizer": backend,
    }
    with open("big_bird_pieces.json", "w", encoding="utf-8") as file:
        json.dump(result, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
