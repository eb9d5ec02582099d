"""retry.py - calls a function again when it fails, after longer and longer pauses."""
import random
import time


def retry(function, attempts=5, first_pause=0.5):
    """Returns what function() returns; raises its last exception when all attempts have failed."""
    pause = first_pause
    for attempt in range(attempts):
        try:
            return function()
        except OSError:
            if attempt + 1 == attempts:
                raise
            # Jitter: clients that failed together do not come back together.
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause *= 2
