"""Servers that workloads share are shown as parts that add up."""

from fleetmark.reports.kit import format as fmt


def test_parts_of_shared_servers_add_up() -> None:
    assert [fmt.servers_shared(part) for part in (12.4, 7.6, 1234.5)] == ["12.4", "7.6", "1,234.5"]
    assert [fmt.servers_shared(part) for part in (12.0, 47.0000001, 0.0)] == ["12", "47", "0"]
