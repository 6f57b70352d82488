"""Golden values of training: every optimiser over 20 steps, schedules, and the loss curve of a small network.

Run with PyTorch 2.13 from this folder: python make_train.py
"""

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import lr_scheduler

from safetensors_file import save

STEPS = 20

OPTIMISERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd_momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.2, weight_decay=0.01),
    "sgd_nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adam_decay": lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.98), eps=1e-9, weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "adamw_decay": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.3),
    "adadelta": lambda p: torch.optim.Adadelta(p),
    "adadelta_decay": lambda p: torch.optim.Adadelta(p, lr=0.5, rho=0.8, eps=1e-4, weight_decay=0.1),
    "adagrad": lambda p: torch.optim.Adagrad(p),
    "adagrad_decay": lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p),
    "rmsprop_momentum": lambda p: torch.optim.RMSprop(p, lr=0.003, momentum=0.9, weight_decay=0.1),
    "rmsprop_centered": lambda p: torch.optim.RMSprop(p, lr=0.003, alpha=0.9, momentum=0.5, centered=True),
}


def make_optimisers():
    torch.manual_seed(1)
    start = torch.randn(23)
    gradients = torch.randn(STEPS, 23) * torch.logspace(-3, 1, 23)
    tensors = {"start": start, "gradients": gradients}
    for name, make in OPTIMISERS.items():
        matrix, vector = nn.Parameter(start[:15].view(3, 5).clone()), nn.Parameter(start[15:].clone())
        optimiser = make([matrix, vector])
        weights = []
        for step in range(STEPS):
            matrix.grad, vector.grad = gradients[step, :15].view(3, 5).clone(), gradients[step, 15:].clone()
            optimiser.step()
            weights.append(torch.cat([matrix.detach().flatten(), vector.detach()]))
        tensors["weights." + name] = torch.stack(weights)

    # Clipping by norm, through plain SGD, so that the clipped gradients themselves show.
    matrix = nn.Parameter(start.clone())
    optimiser = torch.optim.SGD([matrix], lr=1.0)
    norms, weights = [], []
    for step in range(STEPS):
        matrix.grad = gradients[step].clone() * (0.01 if step % 2 else 1)
        norms.append(nn.utils.clip_grad_norm_([matrix], 1.5))
        optimiser.step()
        weights.append(matrix.detach().clone())
    tensors["clip.norms"], tensors["clip.weights"] = torch.stack(norms), torch.stack(weights)
    save("optimizers.safetensors", tensors)


def rates(make, steps=30, metrics=None):
    optimiser = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = make(optimiser)
    result = []
    for step in range(steps):
        result.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step(*([metrics[step]] if metrics is not None else []))
    return torch.tensor(result)


def make_schedules():
    metrics = [5, 4, 4, 4, 4, 3.9999, 3.9999, 3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]
    save("schedules.safetensors", {
        "cosine": rates(lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=29, eta_min=0.05)),
        "step": rates(lambda o: lr_scheduler.StepLR(o, step_size=7, gamma=0.3)),
        "milestones": rates(lambda o: lr_scheduler.MultiStepLR(o, milestones=[5, 6, 20], gamma=0.5)),
        "plateau": rates(lambda o: lr_scheduler.ReduceLROnPlateau(o, factor=0.5, patience=2, cooldown=1),
                         metrics=metrics),
        "one_cycle": rates(lambda o: lr_scheduler.OneCycleLR(o, max_lr=1, total_steps=30, pct_start=0.3)),
        "plateau.metrics": torch.tensor(metrics),
    })


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.hidden = nn.Linear(40, 24)
        self.norm = nn.LayerNorm(24)
        self.output = nn.Linear(24, 7)

    def forward(self, ids):
        return self.output(self.norm(F.gelu(self.hidden(self.embedding(ids).flatten(1)))))


def make_loss_curve():
    torch.manual_seed(2)
    network = Network()
    tensors = {"start." + name: value.detach().clone() for name, value in network.named_parameters()}
    matrices = [p for p in network.parameters() if p.dim() > 1]
    vectors = [p for p in network.parameters() if p.dim() <= 1]
    optimiser = torch.optim.AdamW([{"params": matrices}, {"params": vectors, "weight_decay": 0.0}],
                                  lr=0.02, weight_decay=0.1)
    schedule = lr_scheduler.CosineAnnealingLR(optimiser, T_max=10)
    ids, labels = torch.randint(0, 11, (10, 16, 5)), torch.randint(0, 7, (10, 16))
    labels[3, 5] = -100  # an ignored one
    losses, norms = [], []
    for step in range(10):
        loss = F.cross_entropy(network(ids[step]), labels[step], label_smoothing=0.1)
        optimiser.zero_grad()
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(network.parameters(), 1.0))
        optimiser.step()
        schedule.step()
        losses.append(loss.detach())
    tensors |= {"end." + name: value.detach() for name, value in network.named_parameters()}
    tensors |= {"ids": ids.float(), "labels": labels.float(), "losses": torch.stack(losses), "norms": torch.stack(norms)}
    save("loss_curve.safetensors", tensors)


make_optimisers()
make_schedules()
make_loss_curve()
