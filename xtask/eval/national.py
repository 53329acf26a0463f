"""All identifiers but the headline ones."""

import americas
import asia_pacific
import devices
import europe_east
import europe_west


def identifiers():
    for part in [americas, europe_west, europe_east, asia_pacific, devices]:
        yield from part.identifiers()
