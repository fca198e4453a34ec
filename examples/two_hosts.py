"""One training over the devices of several machines; start it once on each.

    python two_hosts.py HOST:PORT 2 0    # on the first, which must be reachable at HOST:PORT
    python two_hosts.py HOST:PORT 2 1    # on the second

Every process makes the same data and keeps only its own devices' share of it on them.
"""

import sys

import jax

from headcount import training


def main(coordinator: str, processes: int, number: int) -> None:
    jax.distributed.initialize(coordinator, num_processes=processes, process_id=number)
    config = training.TrainConfig(n=4000, width=64, steps=50, optimiser="gd", dtype="float64")
    run = training.run_config(config, devices=jax.devices())
    if jax.process_index() == 0:  # all processes have the same numbers; one writes them
        run.save("two_hosts.nc")
        print(f"{len(jax.devices())} devices, loss {run.final_loss:.6e}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
