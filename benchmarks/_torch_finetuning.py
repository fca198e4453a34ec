"""The other side of `text_finetuning`: the same steps in PyTorch, in an environment of its own.

Run by another interpreter, which has torch and transformers: `python _torch_finetuning.py folder
threads`. Reads a batch as JSON, then one line per measurement; answers with seconds.
"""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    """Load the model, take a batch, and time a step for every further line."""
    import torch
    from transformers import AutoModelForSequenceClassification

    folder, threads = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(threads)
    model = AutoModelForSequenceClassification.from_pretrained(
        folder, num_labels=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-6)
    given = json.loads(sys.stdin.readline())
    ids, mask, labels = (torch.tensor(given[name]) for name in ("ids", "mask", "labels"))
    for _ in sys.stdin:
        began, spent = time.perf_counter(), time.process_time()
        optimiser.zero_grad()
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss.backward()
        optimiser.step()
        seconds = (time.perf_counter() - began, time.process_time() - spent)
        print(json.dumps([*seconds, float(loss.detach())]), flush=True)


if __name__ == "__main__":
    main()
