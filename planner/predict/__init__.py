"""From figures of machines on record to what another machine would show."""
