"""PyTorch's side of captioning: training of Show, Attend and Tell's decoder, and MobileNet's features.

The same layers, sizes, dropout and loss as Fovea's. What can be said once for all steps is said once: keys are projected
once, tokens' part of the gates, the readout and the output layer are made for all steps together.
"""

import torch
import torch.nn.functional as F
from torch import nn

CAPTIONS, PLACES, CHANNELS, LENGTH, VOCABULARY, WIDTH, DROPOUT = 64, 196, 512, 12, 3000, 512, 0.5
BLOCKS = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.output = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.first_h, self.first_c = nn.Linear(CHANNELS, WIDTH), nn.Linear(CHANNELS, WIDTH)
        self.key = nn.Linear(CHANNELS, WIDTH, bias=False)
        self.from_state = nn.Linear(WIDTH, 4 * WIDTH + WIDTH + 1)  # the LSTM's gates, the query, beta
        self.score = nn.Parameter(torch.randn(WIDTH) / WIDTH**0.5)
        self.from_token = nn.Linear(WIDTH, 4 * WIDTH)
        self.from_context = nn.Linear(CHANNELS, 4 * WIDTH, bias=False)
        self.read_state, self.read_context = nn.Linear(WIDTH, WIDTH), nn.Linear(CHANNELS, WIDTH, bias=False)

    def forward(self, features, fed, wanted):
        mean, keys = features.mean(1), self.key(features)
        h, c = torch.tanh(self.first_h(mean)), torch.tanh(self.first_c(mean))
        embedded = F.dropout(self.embedding(fed), DROPOUT, True)
        states, contexts, weights = [], [], []
        for product in self.from_token(embedded).unbind(1):
            gates, query, beta = self.from_state(h).split([4 * WIDTH, WIDTH, 1], 1)
            alpha = (torch.tanh(keys + query[:, None]) @ self.score).softmax(1)
            z = torch.sigmoid(beta) * torch.bmm(alpha[:, None], features)[:, 0]
            i, f, g, o = (product + gates + self.from_context(z)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
            contexts.append(z)
            weights.append(alpha)
        read = self.read_state(torch.stack(states, 1)) + self.read_context(torch.stack(contexts, 1)) + embedded
        logits = self.output(F.dropout(torch.tanh(read), DROPOUT, True))
        loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten())
        return loss + ((1 - sum(weights)) ** 2).sum() / wanted.numel()


def sat_decoder():
    def build(wrap):
        network = Decoder()
        features = torch.randn(CAPTIONS, PLACES, CHANNELS)
        fed, wanted = torch.randint(VOCABULARY, (2, CAPTIONS, LENGTH))
        loss = wrap(network)

        def step():
            network.zero_grad()
            loss(features, fed, wanted).backward()

        return step

    return {"eager": lambda: build(lambda f: f), "compiled": lambda: build(torch.compile)}


def mobilenet_features():
    def build(wrap):
        layers, channels = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()], 32
        for filters, stride in BLOCKS:
            layers += [nn.Conv2d(channels, channels, 3, stride, 1, groups=channels, bias=False),
                       nn.BatchNorm2d(channels), nn.ReLU6(), nn.Conv2d(channels, filters, 1, bias=False),
                       nn.BatchNorm2d(filters), nn.ReLU6()]
            channels = filters
        network = wrap(nn.Sequential(*layers).eval().to(memory_format=torch.channels_last))
        picture = torch.randn(1, 3, 224, 224).to(memory_format=torch.channels_last)

        def step():
            with torch.inference_mode():
                network(picture)

        return step

    return {"eager": lambda: build(lambda f: f), "compiled": lambda: build(torch.compile)}
