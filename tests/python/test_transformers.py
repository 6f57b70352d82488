"""attn_implementation="fovea" against "eager" on small random models of many families."""

import copy

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import fovea.transformers  # noqa: E402

fovea.transformers.register()

SIZES = dict(vocab_size=61, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
             max_position_embeddings=64)
NO_DROPOUT = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
T = transformers

FAMILIES = {
    "bert": (T.BertForMaskedLM, T.BertConfig(**SIZES, **NO_DROPOUT)),
    "roberta": (T.RobertaForMaskedLM, T.RobertaConfig(**SIZES, **NO_DROPOUT, pad_token_id=1)),
    "distilbert": (T.DistilBertForMaskedLM, T.DistilBertConfig(vocab_size=61, dim=32, n_layers=2, n_heads=4, hidden_dim=48,
                                                               max_position_embeddings=64, dropout=0.0, attention_dropout=0.0)),
    "gpt2": (T.GPT2LMHeadModel, T.GPT2Config(vocab_size=61, n_embd=32, n_layer=2, n_head=4, n_positions=64, resid_pdrop=0.0,
                                             embd_pdrop=0.0, attn_pdrop=0.0)),
    "llama": (T.LlamaForCausalLM, T.LlamaConfig(**SIZES, num_key_value_heads=2)),
    "mistral": (T.MistralForCausalLM, T.MistralConfig(**SIZES, num_key_value_heads=2, sliding_window=5)),
    "qwen2": (T.Qwen2ForCausalLM, T.Qwen2Config(**SIZES, num_key_value_heads=2, use_sliding_window=True, sliding_window=4,
                                                max_window_layers=1)),
    "gemma2": (T.Gemma2ForCausalLM, T.Gemma2Config(**SIZES, num_key_value_heads=2, head_dim=8, sliding_window=6,
                                                   attn_logit_softcapping=5.0)),
    "opt": (T.OPTForCausalLM, T.OPTConfig(vocab_size=61, hidden_size=32, word_embed_proj_dim=32, num_hidden_layers=2,
                                          num_attention_heads=4, ffn_dim=48, max_position_embeddings=64, dropout=0.0)),
    "bart": (T.BartForConditionalGeneration, T.BartConfig(
        vocab_size=61, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64, dropout=0.0)),
    "t5": (T.T5ForConditionalGeneration, T.T5Config(vocab_size=61, d_model=32, d_kv=8, num_layers=2, num_heads=4, d_ff=48,
                                                    dropout_rate=0.0, decoder_start_token_id=0)),
    "modernbert": (T.ModernBertForMaskedLM, T.ModernBertConfig(
        **SIZES, local_attention=8, global_attn_every_n_layers=2, pad_token_id=1, attention_dropout=0.0, mlp_dropout=0.0,
        embedding_dropout=0.0)),
    "gpt_oss": (T.GptOssForCausalLM, T.GptOssConfig(**SIZES, num_key_value_heads=2, head_dim=8, sliding_window=5,
                                                    num_local_experts=2, num_experts_per_tok=1)),
    "vit": (T.ViTForImageClassification, T.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                                     intermediate_size=48, image_size=24, patch_size=6, num_labels=5,
                                                     **NO_DROPOUT)),
}
CAUSAL = ("gpt2", "llama", "mistral", "qwen2", "gemma2", "opt", "gpt_oss")


@pytest.fixture(autouse=True)
def one_thread():
    """For models this small a second thread costs more than it gives."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def models(name):
    make, config = FAMILIES[name]
    torch.manual_seed(3)
    config = copy.deepcopy(config)
    config._attn_implementation = "eager"
    eager = make(config)
    other = copy.deepcopy(config)
    other._attn_implementation = "fovea"
    ours = make(other)
    ours.load_state_dict(eager.state_dict())
    assert ours.config._attn_implementation == "fovea"
    return eager.eval(), ours.eval()


def batch(name, padding):
    """Inputs, and where the outputs count: not at padding."""
    torch.manual_seed(5)
    if name == "vit":
        return dict(pixel_values=torch.randn(3, 3, 24, 24), labels=torch.tensor([1, 0, 4])), None
    ids = torch.randint(4, 61, (3, 14))
    mask = torch.ones(3, 14, dtype=torch.long)
    for row, length in enumerate((14, 9, 3)):
        if padding == "right":
            mask[row, length:] = 0
        elif padding == "left":
            mask[row, : 14 - length] = 0
        elif padding == "holes":
            mask[row, 3 : 17 - length] = 0
    ids[mask == 0] = 1
    # Nor is a token predicted from padding: rows there see nothing, and what they give differs on purpose.
    predicted = mask.bool() & (mask.roll(1, 1).bool() if name in CAUSAL else True)
    labels = torch.where(predicted, ids, -100)
    return dict(input_ids=ids, attention_mask=mask, labels=labels), mask.bool()


def cases():
    for name in FAMILIES:
        for padding in ("none",) if name == "vit" else ("none", "right", "left", "holes"):
            yield name, padding


@pytest.mark.parametrize("name,padding", cases())
def test_outputs_and_gradients_equal_eager(name, padding):
    eager, ours = models(name)
    inputs, counts = batch(name, padding)
    found, wanted = ours(**inputs), eager(**inputs)
    a, b = found.logits, wanted.logits
    if counts is not None:
        a, b = a[counts], b[counts]
    torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(found.loss, wanted.loss, atol=1e-5, rtol=1e-5)
    found.loss.backward()
    wanted.loss.backward()
    for (key, p), r in zip(ours.named_parameters(), eager.parameters()):
        if r.grad is not None:
            torch.testing.assert_close(p.grad, r.grad, atol=2e-5, rtol=1e-3, msg=lambda m: f"{key}: {m}")


@pytest.mark.parametrize("name", FAMILIES)
def test_three_training_steps_equal_eager(name):
    losses = []
    for model in models(name):
        model.train()
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        inputs, _ = batch(name, "right")
        losses.append([])
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(**inputs).loss
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


@pytest.mark.parametrize("name", ["bert", "llama", "bart"])
def test_output_attentions_are_the_weights(name):
    eager, ours = models(name)
    inputs, counts = batch(name, "right")
    inputs.pop("labels")
    found, wanted = ours(**inputs, output_attentions=True), eager(**inputs, output_attentions=True)
    key = "encoder_attentions" if name == "bart" else "attentions"
    assert len(found[key]) == 2
    for a, b in zip(found[key], wanted[key]):
        torch.testing.assert_close(a.transpose(1, 2)[counts], b.transpose(1, 2)[counts], atol=1e-5, rtol=1e-4)
    assert getattr(ours(**inputs), key, None) is None


@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral", "bart"])
def test_generation_with_a_cache_equals_eager(name):
    eager, ours = models(name)
    inputs, _ = batch(name, "left")
    inputs.pop("labels")
    options = dict(max_new_tokens=8, do_sample=False, pad_token_id=1, eos_token_id=None)
    assert torch.equal(ours.generate(**inputs, **options), eager.generate(**inputs, **options))


@pytest.mark.parametrize("name", ["llama", "mistral"])
def test_generation_with_a_static_cache_equals_eager(name):
    eager, ours = models(name)
    inputs, _ = batch(name, "left")
    inputs.pop("labels")
    options = dict(max_new_tokens=8, do_sample=False, pad_token_id=1, eos_token_id=None, cache_implementation="static")
    assert torch.equal(ours.generate(**inputs, **options), eager.generate(**inputs, **options))


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.filterwarnings("ignore")
def test_gradient_checkpointing_changes_nothing(reentrant):
    inputs, _ = batch("llama", "left")
    gradients = []
    for model in models("llama"):
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
        model.train()(**inputs).loss.backward()
        gradients.append([p.grad for p in model.parameters()])
    for a, b in zip(*gradients):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-3)


def test_masks_of_four_dimensions():
    eager, ours = models("llama")
    ids = batch("llama", "none")[0]["input_ids"]
    allowed = torch.ones(3, 1, 14, 14, dtype=torch.bool).tril()
    allowed[:, :, 7:, :3] = False
    added = torch.zeros(allowed.shape).masked_fill(~allowed, torch.finfo(torch.float32).min)
    wanted = eager(ids, attention_mask=added).logits
    for mask in (allowed, added):
        torch.testing.assert_close(ours(ids, attention_mask=mask).logits, wanted, atol=2e-5, rtol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_a_compiled_model_equals_eager():
    eager, ours = models("llama")
    inputs, counts = batch("llama", "right")
    found = torch.compile(ours, backend="aot_eager")(**inputs).logits  # with graph breaks where masks are planned
    torch.testing.assert_close(found[counts], eager(**inputs).logits[counts], atol=2e-5, rtol=1e-4)


def test_a_model_can_change_its_attention():
    eager, ours = models("bert")
    inputs, counts = batch("bert", "right")
    wanted = eager(**inputs).logits
    eager.set_attn_implementation("fovea")
    assert torch.equal(eager(**inputs).logits, ours(**inputs).logits)
    torch.testing.assert_close(eager(**inputs).logits[counts], wanted[counts], atol=2e-5, rtol=1e-4)


def test_a_long_sliding_window_makes_no_square_mask():
    config = copy.deepcopy(FAMILIES["mistral"][1])
    config.max_position_embeddings, config.sliding_window = 1 << 15, 64
    config._attn_implementation = "fovea"
    model = T.MistralModel(config).eval()
    mask = fovea.transformers.fovea_mask(1, 20000, 20000, mask_function=T.masking_utils.sliding_window_causal_mask_function(64))
    assert mask.pattern == "window(63,0)" and mask.mask is None
    with torch.no_grad():  # 20000 x 20000 numbers would take 1.6 GB
        out = model(torch.randint(4, 61, (1, 20000))).last_hidden_state
    assert out.isfinite().all()


def test_masks_that_only_values_can_tell():
    from fovea.transformers import fovea_mask

    documents = torch.tensor([[0] * 5 + [1] * 9] * 3)
    for function in (T.masking_utils.chunked_causal_mask_function(4, torch.tensor([0, 2, 3])),
                     T.masking_utils.and_masks(T.masking_utils.causal_mask_function,
                                               T.masking_utils.packed_sequence_mask_function(documents))):
        padding = batch("bert", "left")[1]
        planned = fovea_mask(3, 14, 14, mask_function=function, attention_mask=padding)
        wanted = T.masking_utils.sdpa_mask(3, 14, 14, mask_function=function, attention_mask=padding,
                                           allow_is_causal_skip=False)
        q, k = torch.randn(3, 2, 14, 8), torch.randn(3, 2, 14, 8)
        eye = torch.eye(14).expand(3, 2, 14, 14)
        import fovea.torch

        weights = fovea.torch.attention(q, k, eye, f"scaled_dot / {planned.pattern}", mask=planned.mask)
        assert torch.equal(weights > 0, wanted.expand(3, 2, 14, 14))
