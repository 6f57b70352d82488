"""A training step of the recurrent attention model in PyTorch, as `fovea bench ops --filter ram_training` runs it.

Two ways to cut the windows out of a batch: one slice for each picture and scale, as public implementations do, and one
gather for all pictures of a scale.
"""

import torch
import torch.nn.functional as F
from torch import nn

PICTURES, SIDE, GLIMPSES, PATCH, SCALES, HIDDEN, FEATURES, CLASSES, DEVIATION = 64, 60, 8, 12, 3, 256, 128, 10, 0.1


def starts(locations, side):
    """The first row and column of each window in a picture that has `side` zeros around it."""
    return ((locations + 1) / 2 * SIDE - side / 2 + 0.5).floor().long() + side


def by_slices(padded, locations):
    seen = []
    for scale, pictures in enumerate(padded):
        side = PATCH << scale
        windows = [picture[:, top:top + side, left:left + side]
                   for picture, (top, left) in zip(pictures, starts(locations, side).tolist())]
        seen.append(F.avg_pool2d(torch.stack(windows), 1 << scale).flatten(1))
    return torch.cat(seen, 1)


def by_gather(padded, locations):
    seen = []
    for scale, pictures in enumerate(padded):
        side = PATCH << scale
        top, left = starts(locations, side).unbind(1)
        offsets = torch.arange(side)
        rows, columns = top[:, None, None] + offsets[:, None], left[:, None, None] + offsets
        windows = pictures[torch.arange(len(pictures))[:, None, None], 0, rows, columns]
        seen.append(F.avg_pool2d(windows[:, None], 1 << scale).flatten(1))
    return torch.cat(seen, 1)


class Ram(nn.Module):
    def __init__(self, sensor):
        super().__init__()
        self.sensor = sensor
        self.what, self.where = nn.Linear(SCALES * PATCH * PATCH, FEATURES), nn.Linear(2, FEATURES)
        self.glimpse, self.core = nn.Linear(2 * FEATURES, HIDDEN), nn.Linear(2 * HIDDEN, HIDDEN)
        self.output, self.baseline = nn.Linear(HIDDEN, CLASSES), nn.Linear(HIDDEN, 1)
        self.locate1, self.locate2 = nn.Linear(HIDDEN, FEATURES), nn.Linear(FEATURES, 2)

    def loss(self, pictures, labels):
        padded = [F.pad(pictures, (PATCH << scale,) * 4) for scale in range(SCALES)]
        state, log_p, expected = torch.zeros(len(pictures), HIDDEN), [], []
        for _ in range(GLIMPSES):
            read = state.detach()
            mean = torch.tanh(self.locate2(torch.relu(self.locate1(read))))
            drawn = (mean + DEVIATION * torch.randn_like(mean)).detach()
            log_p.append((-((drawn - mean) / DEVIATION)**2 / 2).sum(1))
            expected.append(self.baseline(read)[:, 0])
            location = drawn.clamp(-1, 1)
            what = torch.relu(self.what(self.sensor(padded, location)))
            glimpse = torch.relu(self.glimpse(torch.cat([what, torch.relu(self.where(location))], 1)))
            state = torch.relu(self.core(torch.cat([state, glimpse], 1)))
        logits, log_p, expected = self.output(state), torch.stack(log_p), torch.stack(expected)
        reward = (logits.argmax(1) == labels).float()[None]
        advantage = (reward - expected).detach()
        return F.cross_entropy(logits, labels) + ((expected - reward)**2).mean() - (advantage * log_p).sum(0).mean()


def training():
    def build(sensor):
        network = Ram(sensor)
        optimizer = torch.optim.Adam(network.parameters())
        pictures, labels = torch.randn(PICTURES, 1, SIDE, SIDE), torch.arange(PICTURES) % CLASSES

        def step():
            optimizer.zero_grad()
            network.loss(pictures, labels).backward()
            optimizer.step()

        return step

    return {"slices": lambda: build(by_slices), "gather": lambda: build(by_gather)}
