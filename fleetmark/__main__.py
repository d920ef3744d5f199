"""``python -m fleetmark``."""

from fleetmark.cli import main

if __name__ == "__main__":
    main()
