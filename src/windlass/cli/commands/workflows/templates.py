"""`windlass templates`: workflows kept on the server under a name."""

from pathlib import Path

from cyclopts import App

from windlass.cli.commands.suggestions import suggesting
from windlass.cli.commands.workflows.workflows import start
from windlass.cli.options.connection import DEFAULT_PLACE, Place, TemplateName
from windlass.cli.options.flags import Json
from windlass.cli.output.tables import print_rows
from windlass.cli.output.text import BOLD, escape_json, print_answer, print_change, print_json, say
from windlass.messages.schedules import Template, TemplateList, TemplatePut, TemplateRequest
from windlass.messages.workers import Changed
from windlass.workflows.files import describe_file

templates = App(name="templates", help="Create, show, start and delete workflow templates.")
templates.command(start, name="start")


@templates.command(name="apply")
def apply_template(
    name: TemplateName, file: Path, /, *, at: Place = DEFAULT_PLACE, json: Json = False
) -> None:
    """Create a template, or a new version if the file changed, and print NAME@VERSION.

    Parameters
    ----------
    file
        A YAML or JSON file, as for `windlass workflows submit`. Files that it refers to are
        included.
    """
    request = TemplateRequest(body=describe_file(file))
    made = at.call("PUT", f"/api/v1/templates/{name}", TemplatePut, request)
    print_answer(made, json, f"{made.name}@{made.version}")


@templates.command(name="list")
@templates.default
def list_templates(*, at: Place = DEFAULT_PLACE, json: Json = False) -> None:
    """List templates."""
    found = at.call("GET", "/api/v1/templates", TemplateList).templates
    rows = [
        (t.name, t.namespace, t.version, t.priority, ", ".join(t.parameters), t.created_at,
         t.created_by)
        for t in found
    ]  # fmt: skip
    columns = ("template", "namespace", "version", "priority", "parameters", "created", "by")
    print_rows(
        found, json, columns, rows, "no templates: create one with `windlass templates apply`"
    )


@templates.command(name="show")
def show_template(template: str, /, *, at: Place = DEFAULT_PLACE, json: Json = False) -> None:
    """Show a template, without the secrets of its webhooks.

    Parameters
    ----------
    template
        The template's name, or name@version.
    """
    import msgspec

    name, _, version = template.partition("@")
    path = f"/api/v1/templates/{name}"
    with suggesting(at):
        found = at.call("GET", path, Template, version=version or None)
    if json:
        print_json(found)
        return
    by = f" by {found.created_by}" if found.created_by else ""
    say(f"{found.name}@{found.version}, created {found.created_at}{by}", BOLD)
    say(escape_json(msgspec.json.format(msgspec.json.encode(found.body), indent=2).decode()))


@templates.command(name="delete")
def delete_template(
    name: TemplateName, /, *, at: Place = DEFAULT_PLACE, json: Json = False
) -> None:
    """Delete a template; workflows that it started continue."""
    path = f"/api/v1/templates/{name}"
    print_change(at.call("DELETE", path, Changed), json)


templates.command(apply_template, name="put", show=False)
templates.command(delete_template, name="remove", show=False)
