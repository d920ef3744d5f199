"""What everything else stands on: errors, measurements, facts, units, sentences; imports nothing else of Fleetmark."""
