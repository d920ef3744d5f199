"""Define the models of torch_train: a GPT-like transformer and a ResNet-like network, by preset, in plain torch."""

import torch
from torch import nn
from torch.nn import functional

# layers, width, heads, vocabulary, tokens per sequence, sequences per device; the sizes are from table 2.1 of GPT-3
GPT = {
    "check": (2, 64, 2, 256, 32, 4),
    "gpt-tiny": (4, 256, 4, 4096, 256, 4),
    "gpt-125m": (12, 768, 12, 50304, 1024, 8),
    "gpt-1b": (24, 2048, 16, 50304, 2048, 4),
    "gpt-7b": (32, 4096, 32, 50304, 2048, 1),
}
# blocks of each stage, width of the first, bottleneck, classes, side of an image, images per device
RESNET = {
    "check": ((1, 1), 16, False, 10, 16, 4),
    "resnet-tiny": ((1, 1, 1), 16, False, 10, 32, 32),
    "resnet-50": ((3, 4, 6, 3), 64, True, 1000, 224, 64),
}
NAMES = sorted(name for name in {**GPT, **RESNET} if name != "check")


def single(output):
    """Return the output in the precision of the loss, at least fp32."""
    return output if output.dtype == torch.float64 else output.float()


class Block(nn.Module):
    """Compute attention and a feed-forward layer of four widths, each after a norm."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(width, dim=2)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """A causal language model whose head shares the embedding's weights."""

    def __init__(self, layers, width, heads, vocabulary, length):
        super().__init__()
        self.layers, self.width, self.length, self.vocabulary = layers, width, length, vocabulary
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.fill()

    def fill(self):
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.02)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.tokens.weight)

    def loss(self, output, batch):
        return functional.cross_entropy(single(output[:, :-1].flatten(0, 1)), batch[:, 1:].flatten())

    def batch(self, count, generator):
        return (torch.randint(0, self.vocabulary, (count, self.length), generator=generator),)

    def units(self, count):
        """Return the tokens of this number of sequences."""
        return count * self.length

    def flops(self, count):
        """Return the operations of a step: 6 N + 12 L T d per token (PaLM, appendix B). N excludes the position
        embedding, which needs only additions.
        """
        n = sum(p.numel() for p in self.parameters()) - self.places.weight.numel()
        return self.units(count) * (6 * n + 12 * self.layers * self.length * self.width)


class Residual(nn.Module):
    """A basic or a bottleneck block of a ResNet."""

    def __init__(self, inputs, width, stride, bottleneck, norm):
        super().__init__()
        outputs = 4 * width if bottleneck else width
        if bottleneck:
            sizes = [(inputs, width, 1, 1), (width, width, 3, stride), (width, outputs, 1, 1)]
        else:
            sizes = [(inputs, width, 3, stride), (width, outputs, 3, 1)]
        self.convs = nn.ModuleList([nn.Conv2d(a, b, k, s, k // 2, bias=False) for a, b, k, s in sizes])
        self.norms = nn.ModuleList([norm(b) for _, b, _, _ in sizes])
        self.skip = None
        if stride > 1 or inputs != outputs:
            self.skip = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), norm(outputs))

    def forward(self, x):
        y = x
        for n, (conv, norm) in enumerate(zip(self.convs, self.norms)):  # noqa: B905
            y = norm(conv(y))
            y = functional.relu(y) if n + 1 < len(self.convs) else y
        return functional.relu(y + (self.skip(x) if self.skip else x))


class Resnet(nn.Module):
    """Classify images. ``exact``: norms over groups of channels, which do not depend on how the batch is shared."""

    def __init__(self, blocks, width, bottleneck, classes, side, exact=False):
        super().__init__()
        self.side, self.classes = side, classes
        norm = (lambda channels: nn.GroupNorm(4, channels)) if exact else nn.BatchNorm2d
        large = side > 64
        self.stem = nn.Conv2d(3, width, 7 if large else 3, 2 if large else 1, 3 if large else 1, bias=False)
        self.stem_norm, self.pool = norm(width), nn.MaxPool2d(3, 2, 1) if large else nn.Identity()
        stages, inputs = [], width
        for stage, number in enumerate(blocks):
            for n in range(number):
                stride = 2 if stage and not n else 1
                stages.append(Residual(inputs, width << stage, stride, bottleneck, norm))
                inputs = (width << stage) * (4 if bottleneck else 1)
        self.blocks, self.head = nn.ModuleList(stages), nn.Linear(inputs, classes)

    def forward(self, images):
        x = self.pool(functional.relu(self.stem_norm(self.stem(images))))
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))

    def loss(self, output, _, labels):
        return functional.cross_entropy(single(output), labels)

    def batch(self, count, generator):
        images = torch.randn(count, 3, self.side, self.side, generator=generator)
        return images, torch.randint(0, self.classes, (count,), generator=generator)

    def units(self, count):
        return count

    def flops(self, count):
        """Return the operations of a step: three times the forward pass, whose convolutions and head need two
        operations per weight and position.
        """
        side, sizes = self.side, {}

        def note(module, _, output):
            places = output.shape[2] * output.shape[3] if output.dim() == 4 else 1
            sizes[module] = 2 * module.weight.numel() * places

        hooks = [m.register_forward_hook(note) for m in self.modules() if isinstance(m, (nn.Conv2d, nn.Linear))]
        weight = next(self.parameters())
        training = self.training
        with torch.no_grad():
            self.eval()(torch.zeros(1, 3, side, side, device=weight.device, dtype=weight.dtype))
        self.train(training)
        for hook in hooks:
            hook.remove()
        return 3 * sum(sizes.values()) * count


def build(name, layers=0):
    """Return (model on the default device, samples per device) of a preset; ``layers``: a smaller number for a GPT."""
    if name in GPT and name != "check":
        depth, width, heads, vocabulary, length, samples = GPT[name]
        return Gpt(layers or depth, width, heads, vocabulary, length), samples
    return Resnet(*RESNET[name][:5]), RESNET[name][5]


def fill(model):
    """Initialise weights without values as the model does, whether they are whole or sharded."""
    for module in model.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    if isinstance(model, Gpt):
        model.fill()


def build_check(name):
    """Return the small model of the same family for the check of the loss, and the samples of a rank."""
    if name in GPT:
        return Gpt(*GPT["check"][:5]), GPT["check"][5]
    return Resnet(*RESNET["check"][:5], exact=True), RESNET["check"][5]


def parameters(name, layers=0):
    """Return the number of parameters of a preset, and of its largest block, without allocating anything."""
    more = 0
    with torch.device("meta"):
        model, _ = build(name, 1)
        if name in GPT:  # all blocks are alike
            more = (layers or GPT[name][0]) - 1
    blocks = [sum(p.numel() for p in block.parameters()) for block in model.blocks]
    return sum(p.numel() for p in model.parameters()) + more * blocks[0], max(blocks)
