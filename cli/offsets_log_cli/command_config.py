"""How a cluster is reached: ``--bootstrap-server`` and ``--command-config``."""

from __future__ import annotations

from typing import Any

import click

from offsets_log_cli.help_page import CLUSTER, option


class Servers(click.ParamType):  # type: ignore[type-arg]
    """``HOST:PORT``, or several with commas between them."""

    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the value; fail for anything else."""
        from offsets_log.cluster.address import address
        from offsets_log.errors import ClusterError

        servers = [server.strip() for server in str(value).split(",") if server.strip()]
        try:
            for server in servers:
                address(server)
        except ClusterError as error:
            self.fail(error.problem, param, ctx)
        if not servers:
            self.fail("no server is named", param, ctx)
        return str(value)


BOOTSTRAP_SERVER = option(
    "--bootstrap-server",
    under=CLUSTER,
    metavar="HOST:PORT",
    type=Servers(),
    required=True,
    help="Brokers, separated by commas.",
)

COMMAND_CONFIG = option(
    "--command-config",
    under=CLUSTER,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Properties for the connection. As for Kafka's own tools: TLS with PEM, JKS or PKCS #12 stores, SASL.",
)
