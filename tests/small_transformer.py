"""A small transformer that is made on the spot, and what it reads."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_array

from longtail.data.bags import Bags

WORDS = ["red", "white", "wine", "fast", "old", "car", "a", "bottle", "of", "drink", "vehicle"]
TEXTS = ["red wine", "white wine", "fast car", "old car"] * 5
LABELS = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
BERT = {
    "vocab_size": 4 + len(WORDS),
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 12,
}


def saved(path, config):
    """Save a network with random weights, and a tokeniser of whole words."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    pieces = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(pieces, unk_token="[UNK]"))  # noqa: S106 - no password
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(path / "tokenizer.json"))
    torch.manual_seed(0)
    transformers.AutoModel.from_config(config).save_pretrained(path)
    return path


def as_bags(texts):
    features = csr_array(np.array([[len(text) > 0] for text in texts], np.float32))
    return Bags.of(features)._replace(texts=np.array([*texts], np.object_))
