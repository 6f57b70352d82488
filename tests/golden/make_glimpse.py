"""Golden values of the glimpse models: weights, loss, gradients, the losses of ten steps of Adam, logits after every
glimpse. The draws of RAM are fixed: the noise of every step is stored.

Pictures are kept channels last. Run with PyTorch 2.13 from this folder: python make_glimpse.py
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from make_gates import rounded
from safetensors_file import save

CLASSES, HIDDEN, FEATURES, STEPS, DEVIATION, REINFORCE = 4, 12, 10, 10, 0.75, 0.7


def sensor(pictures, locations, copies, patch, scales):
    """pictures: [N, C, H, W], locations: [N copies, 2], vertical first -> [N copies, scales patch patch C]."""
    rows = []
    height, width = pictures.shape[2:]
    for row, (v, h) in enumerate(locations.tolist()):
        windows = []
        for scale in range(scales):
            side = patch * 2**scale
            padded = F.pad(pictures[row // copies], (side, side, side, side))
            top = math.floor((v + 1) / 2 * height - side / 2 + 0.5) + side
            left = math.floor((h + 1) / 2 * width - side / 2 + 0.5) + side
            window = padded[:, top:top + side, left:left + side]
            windows.append(F.avg_pool2d(window[None], 2**scale)[0].permute(1, 2, 0).reshape(-1))
        rows.append(torch.cat(windows))
    return torch.stack(rows)


class Glimpses(nn.Module):
    def __init__(self, core, channels, patch, scales):
        super().__init__()
        self.patch, self.scales = patch, scales
        self.what = nn.Linear(scales * patch * patch * channels, FEATURES)
        self.where = nn.Linear(2, FEATURES)
        self.glimpse = nn.Linear(2 * FEATURES, HIDDEN)
        self.core = nn.LSTMCell(HIDDEN, HIDDEN) if core == "lstm" else nn.Linear(2 * HIDDEN, HIDDEN)
        self.output = nn.Linear(HIDDEN, CLASSES)

    def see(self, pictures, locations, copies):
        what = torch.relu(self.what(sensor(pictures, locations, copies, self.patch, self.scales)))
        return torch.relu(self.glimpse(torch.cat([what, torch.relu(self.where(locations))], 1)))

    def first(self, rows):
        return torch.zeros(rows, HIDDEN), torch.zeros(rows, HIDDEN)

    def next(self, glimpse, state):
        if isinstance(self.core, nn.LSTMCell):
            return self.core(glimpse, state)
        return torch.relu(self.core(torch.cat([state[0], glimpse], 1))), state[1]


class Ram(Glimpses):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.locate1, self.locate2 = nn.Linear(HIDDEN, FEATURES), nn.Linear(FEATURES, 2)
        self.baseline = nn.Linear(HIDDEN, 1)

    def run(self, pictures, copies, noise):
        """noise: [glimpses, N copies, 2], zeros for the means."""
        state, log_p, expected, logits = self.first(len(pictures) * copies), [], [], []
        for step in noise:
            seen = state[0].detach()
            mean = torch.tanh(self.locate2(torch.relu(self.locate1(seen))))
            policy = torch.distributions.Normal(mean, DEVIATION)
            drawn = (mean + DEVIATION * step).detach()
            log_p.append(policy.log_prob(drawn).sum(1))
            expected.append(self.baseline(seen)[:, 0])
            state = self.next(self.see(pictures, drawn.clamp(-1, 1), copies), state)
            logits.append(self.output(state[0]))
        return torch.stack(logits), torch.stack(log_p), torch.stack(expected)

    def loss(self, pictures, labels, copies, noise):
        logits, log_p, expected = self.run(pictures, copies, noise)
        labels = labels.repeat_interleave(copies)
        reward = (logits[-1].argmax(1) == labels).float()[None]
        advantage = (reward - expected).detach()
        return (F.cross_entropy(logits[-1], labels) + ((expected - reward)**2).mean() -
                REINFORCE * (advantage * log_p).sum(0).mean())


class Soft(Glimpses):
    def __init__(self, *sizes, grid):
        super().__init__(*sizes)
        self.grid = grid
        self.query, self.key = nn.Linear(HIDDEN, FEATURES), nn.Linear(HIDDEN, FEATURES)

    def run(self, pictures, glimpses):
        places = self.grid**2
        centre = torch.tensor([(2 * i + 1) / self.grid - 1 for i in range(self.grid)])
        raster = torch.cartesian_prod(centre, centre).repeat(len(pictures), 1)
        values = self.see(pictures, raster, places).view(len(pictures), places, HIDDEN)
        keys = self.key(values)
        state, logits, all_weights = self.first(len(pictures)), [], []
        for _ in range(glimpses):
            scores = (keys @ self.query(state[0])[:, :, None])[:, :, 0] / math.sqrt(FEATURES)
            weights = scores.softmax(1)
            state = self.next((weights[:, :, None] * values).sum(1), state)
            logits.append(self.output(state[0]))
            all_weights.append(weights)
        return torch.stack(logits), torch.stack(all_weights)


def make(tensors, name, network, loss, after):
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(parameter.to(torch.bfloat16).to(torch.float32))
    tensors |= {f"{name}.weight.{key}": p.detach().clone() for key, p in network.named_parameters()}
    optimiser = torch.optim.Adam(network.parameters(), lr=0.003)
    losses = []
    for step in range(STEPS):
        optimiser.zero_grad()
        value = loss(step)
        value.backward()
        if step == 0:
            tensors |= {f"{name}.grad.{key}": p.grad.clone() for key, p in network.named_parameters()}
        optimiser.step()
        losses.append(value.detach())
    with torch.no_grad():
        tensors |= {f"{name}.{key}": value for key, value in after().items()} | {f"{name}.losses": torch.stack(losses)}


def make_ram(tensors, core, channels, copies, patch, scales, size, glimpses):
    name, count = f"ram_{core}", 5
    network = Ram(core, channels, patch, scales)
    pictures, labels = rounded(count, channels, *size), torch.randint(0, CLASSES, (count,))
    noise = rounded(STEPS, glimpses, count * copies, 2)
    tensors |= {f"{name}.pictures": pictures.permute(0, 2, 3, 1), f"{name}.labels": labels.float(),
                f"{name}.noise": noise}
    zeros = torch.zeros(glimpses, count, 2)
    make(tensors, name, network, lambda step: network.loss(pictures, labels, copies, noise[step]),
         lambda: {"logits": network.run(pictures, 1, zeros)[0]})


def make_soft(tensors, core, channels, patch, scales, size, glimpses, grid):
    name, count = f"soft_{core}", 4
    network = Soft(core, channels, patch, scales, grid=grid)
    pictures, labels = rounded(count, channels, *size), torch.randint(0, CLASSES, (count,))
    tensors |= {f"{name}.pictures": pictures.permute(0, 2, 3, 1), f"{name}.labels": labels.float()}

    def after():
        logits, weights = network.run(pictures, glimpses)
        return {"logits": logits, "weights": weights}

    make(tensors, name, network, lambda step: F.cross_entropy(network.run(pictures, glimpses)[0][-1], labels), after)


if __name__ == "__main__":
    torch.manual_seed(14)
    tensors = {}
    make_ram(tensors, "rnn", 1, 3, 4, 2, (11, 14), 3)
    make_ram(tensors, "lstm", 2, 1, 3, 1, (9, 8), 4)
    make_soft(tensors, "rnn", 1, 3, 2, (10, 11), 3, 3)
    make_soft(tensors, "lstm", 2, 2, 1, (8, 8), 2, 4)
    save("glimpse.safetensors", tensors)
