"""`windlass namespaces`: the fair shares of namespaces."""

from typing import Annotated

from cyclopts import App, Parameter

from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import Json
from windlass.cli.output.tables import print_table
from windlass.cli.output.text import print_change, print_json
from windlass.wire.workers import Changed, NamespaceWeights, WeightRequest

Namespace = Annotated[str, Parameter(help="The namespace's name.")]

namespaces = App(name="namespaces", help="Show and set the fair shares of namespaces.")


@namespaces.command(name="list")
@namespaces.default
def list_namespaces(*, at: Connection = HERE, json: Json = False) -> None:
    """List namespaces with a weight; all others have weight 1."""
    found = at.call("GET", "/api/v1/namespaces/weights", NamespaceWeights).namespaces
    if json:
        print_json(found)
        return
    rows = [(space.name, space.weight) for space in found]
    print_table(("namespace", "weight"), rows, "no namespace has a weight")


@namespaces.command(name="weight")
def set_weight(
    namespace: Namespace, weight: int, /, *, at: Connection = HERE, json: Json = False
) -> None:
    """Set a namespace's share; it takes effect on servers that have `fair_share = 1`.

    Parameters
    ----------
    weight
        From 1 to 1000. With twice the weight, twice as many jobs of the same priority level run.
    """
    asked = WeightRequest(weight=weight)
    print_change(at.call("POST", f"/api/v1/namespaces/{namespace}/weight", Changed, asked), json)
