"""Drop-ins against torch.nn: outputs, weights and gradients with the same state dict."""

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import fovea.torch  # noqa: E402


def pair(**options):
    torch.manual_seed(4)
    theirs = nn.MultiheadAttention(24, 4, **options)
    ours = fovea.torch.MultiheadAttention(24, 4, **options)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def assert_same(ours, theirs, *args, **kwargs):
    inputs = [x for x in args if x.is_floating_point() and x.requires_grad]
    found, wanted = ours(*args, **kwargs), theirs(*args, **kwargs)
    found, wanted = (x if isinstance(x, tuple) else (x,) for x in (found, wanted))
    for a, b in zip(found, wanted):
        if b is None:
            assert a is None
        else:
            torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)
    upstream = torch.randn_like(wanted[0])
    of = lambda module, out: torch.autograd.grad(out[0], [*inputs, *module.parameters()], upstream)
    for a, b in zip(of(ours, found), of(theirs, wanted)):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-4)


PADDING = torch.arange(7) >= torch.tensor([7, 4, 5])[:, None]
CAUSAL = torch.ones(5, 7, dtype=torch.bool).triu(3)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("options", [
    {}, {"key_padding_mask": PADDING}, {"attn_mask": CAUSAL}, {"attn_mask": CAUSAL, "key_padding_mask": PADDING},
    {"attn_mask": torch.randn(5, 7)}, {"attn_mask": torch.randn(12, 5, 7), "key_padding_mask": torch.zeros(3, 7)},
    {"need_weights": False}, {"average_attn_weights": False},
])
def test_multihead_attention(batch_first, options):
    ours, theirs = pair(batch_first=batch_first)
    q, k, v = torch.randn(3, 5, 24), torch.randn(3, 7, 24), torch.randn(3, 7, 24)
    if not batch_first:
        q, k, v = (x.transpose(0, 1).contiguous() for x in (q, k, v))
    for x in (q, k, v):
        x.requires_grad_()
    assert_same(ours, theirs, q, k, v, **options)


@pytest.mark.parametrize("options", [{"bias": False}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"kdim": 10, "vdim": 6}])
def test_other_forms_of_the_module(options):
    ours, theirs = pair(batch_first=True, **options)
    q = torch.randn(3, 5, 24, requires_grad=True)
    k = torch.randn(3, 7, options.get("kdim", 24), requires_grad=True)
    v = torch.randn(3, 7, options.get("vdim", 24), requires_grad=True)
    assert_same(ours, theirs, q, k, v, key_padding_mask=PADDING)


def test_without_a_batch_and_on_itself():
    ours, theirs = pair()
    x = torch.randn(6, 24, requires_grad=True)
    assert_same(ours, theirs, x, x, x)
    x = torch.randn(6, 3, 24, requires_grad=True)
    assert_same(ours, theirs, x, x, x)


def test_a_wrong_spec_is_an_error_at_once():
    for make in (lambda spec: fovea.torch.MultiheadAttention(8, 2, spec=spec),
                 lambda spec: fovea.torch.TransformerEncoderLayer(8, 2, spec=spec)):  # fmt: skip
        with pytest.raises(ValueError, match="casual.*did you mean \"causal\""):
            make("scaled_dot / casual")


def test_a_spec_is_used_and_printed():
    ours, theirs = pair(batch_first=True)
    ours.spec = "scaled_dot / causal"
    x = torch.randn(2, 9, 24, requires_grad=True)
    mask = torch.ones(9, 9, dtype=torch.bool).triu(1)
    torch.testing.assert_close(ours(x, x, x)[0], theirs(x, x, x, attn_mask=mask)[0], atol=1e-5, rtol=1e-4)
    assert "causal" in repr(ours)


@pytest.mark.parametrize("options", [{}, {"norm_first": True}, {"batch_first": True}, {"activation": "gelu", "bias": False}])
def test_encoder_layer(options):
    torch.manual_seed(4)
    theirs = nn.TransformerEncoderLayer(24, 4, 48, dropout=0.0, **options)
    ours = fovea.torch.TransformerEncoderLayer(24, 4, 48, dropout=0.0, **options)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(5, 5, 24, requires_grad=True)
    padding = torch.arange(5) >= torch.tensor([5, 3, 4, 5, 1])[:, None]
    assert_same(ours, theirs, x, src_key_padding_mask=padding, src_mask=torch.ones(5, 5, dtype=torch.bool).triu(1))


def test_encoder_of_layers_in_use():
    torch.manual_seed(4)
    layer = fovea.torch.TransformerEncoderLayer(24, 4, 48, batch_first=True, spec="scaled_dot / window(2,2)")
    encoder = nn.TransformerEncoder(layer, 2).eval()
    plain = nn.TransformerEncoder(nn.TransformerEncoderLayer(24, 4, 48, batch_first=True), 2, enable_nested_tensor=False)
    plain.load_state_dict(encoder.state_dict())
    plain.eval()
    x = torch.randn(2, 9, 24)
    padding = torch.arange(9) >= torch.tensor([9, 8])[:, None]
    far = (torch.arange(9)[:, None] - torch.arange(9)).abs() > 2
    with torch.no_grad():
        found = encoder(x, src_key_padding_mask=padding)
    torch.testing.assert_close(found, plain(x, mask=far, src_key_padding_mask=padding), atol=1e-5, rtol=1e-4)


def test_bad_calls():
    ours, _ = pair()
    x = torch.randn(5, 3, 24)
    with pytest.raises(ValueError, match="wanted 3"):
        ours(x[0, 0], x, x)
    with pytest.raises(ValueError, match="needs an attn_mask"):
        ours(x, x, x, is_causal=True)
