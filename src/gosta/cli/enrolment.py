"""``gosta node request``, ``join``, ``accept`` and ``leave``: sites join and leave."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gosta.cli import options
from gosta.errors import DataError, FormatError, InputError
from gosta.views import terminal

if TYPE_CHECKING:
    from gosta.net.deploy.bundles import Invitation
    from gosta.net.deploy.enrolment import Proposal

SiteFolder = Annotated[Path, typer.Argument(help="The site's folder.")]
Yes = Annotated[bool, "Accept without being asked."]
AllTerms = Annotated[
    bool, typer.Option("--all", help="Show all terms, also of columns, bins and options.")
]


def request(
    invitation: Annotated[Path, typer.Argument(help="invitation.json of the network.")],
    folder: Annotated[
        Path, typer.Argument(help="The site's folder: created, or one that is there.")
    ],
    reading: options.Reading,
    name: Annotated[str | None, "The site's name in the network."] = None,
    address: Annotated[
        str | None,
        "host:port where neighbours reach it, such as a.example:7400, or outbound: it only dials "
        "out.",
    ] = None,
    listen: Annotated[
        str | None,
        "host:port where it listens; by default on all interfaces, at the port of its address.",
    ] = None,
    data: Annotated[
        Path | None,
        "Its data file, whose number of rows is declared; without it, put data.csv there.",
    ] = None,
    drop_missing: options.DropMissing = False,
    person: Annotated[
        str | None,
        "Column that tells people apart, if some have several rows: its policy counts people then.",
    ] = None,
    new_key: Annotated[
        bool, "In a folder that is there: request a certificate for a new key."
    ] = False,
    yes: Annotated[bool, "Run the Python code of an invitation without being asked."] = False,
) -> None:
    """Make a key, which stays here, and a request for the network's coordinator."""
    from gosta.net.addresses import OUTBOUND
    from gosta.net.deploy import bundles, check, enrolment, summary
    from gosta.net.deploy.node_folder import NodeFolder

    invited = bundles.read(invitation, bundles.Invitation)
    node = NodeFolder(folder)
    if node.is_here:
        site = node.read()
        for option, value in {
            "name": name,
            "listen": listen,
            "data": data,
            "drop_missing": drop_missing or None,
            "person": person,
            **reading.settings(),
        }.items():
            if value is not None:
                raise InputError(
                    f"{option} = {str(value)!r}: {folder} is a site's folder already; change its "
                    "node.toml"
                )
        if site.network.id != invited.network.id:
            raise InputError(
                f"{folder} belongs to network {site.network.id}, the invitation to "
                f"{invited.network.id}"
            )
        made = enrolment.request_again(folder, address, new_key)
    else:
        if name is None or (address is None and listen is None):
            where = "--address, such as a.example:7400, or outbound if it only dials out"
            raise InputError(f"a new site needs --name, its name in the network, and {where}")
        if address == OUTBOUND and listen is not None:
            raise InputError(
                f"listen = {listen!r}: a site whose address is {OUTBOUND} does not listen; leave "
                "it out"
            )
        if new_key:
            raise InputError(
                f"new_key is for a site that has a folder; {folder} is none: leave it out"
            )
        _show_code(invited, yes)
        brought = enrolment.Brought(data, reading.settings(), drop_missing, person)
        try:
            made = enrolment.request(invited, folder, name, address, listen, brought)
        except InputError as error:
            is_about_names = bool(error.place) and not isinstance(error, DataError)
            if data is not None and (is_about_names or isinstance(error, FormatError)):
                shown = f"gosta check {invitation} --data {data}"
                way_out = f"{shown!r} says how the file could be read"
                error.remedy = "; ".join(filter(None, (error.remedy, way_out)))
            raise
        for text in check.doubts_about_rows(folder):
            print(terminal.printable(f"warning: {text}"), file=sys.stderr)
    print(summary.request_summary(folder, invited, made))


def _show_code(invited: Invitation, yes: bool) -> None:
    code = {name: content for name, content in invited.files.items() if name.endswith(".py")}
    if not code or yes:
        return
    for name, content in code.items():
        lines = content.decode(errors="replace").splitlines()
        print(
            f"{name}:",
            *("  " + "".join(c if c.isprintable() else "?" for c in line) for line in lines),
            sep="\n",
        )
    options.confirm(
        "The invitation contains this Python code, which this site will run. Run it?", yes
    )


def join(
    bundle: Annotated[Path, typer.Argument(help="The bundle from the coordinator.")],
    folder: SiteFolder,
    yes: Yes = False,
    has_all: AllTerms = False,
) -> None:
    """Install a bundle: see who the members are and what is computed, and accept it."""
    from gosta.net.deploy import enrolment

    _accept(folder, enrolment.read_bundle(bundle, folder), yes, has_all)
    _show_policy(folder)
    print(
        f"{folder}: installed; start the node with: gosta node {shlex.quote(str(folder))} (a "
        "running one reloads it)"
    )


def _show_policy(folder: Path) -> None:
    """Write a policy.toml if there is none; print what it allows."""
    from gosta.net.deploy.network import task_of
    from gosta.net.deploy.policies import write_policy
    from gosta.private.policy import POLICY_FILE, read_policy

    task = task_of(folder)
    written = " (written now)" * write_policy(folder, task)
    try:
        policy = read_policy(folder)
    except InputError as error:
        print(f"nothing leaves this site: {error}")
        return
    has_noise = task.private is not None and task.private.epsilon is not None
    budget = f"; this site stops at epsilon {policy.epsilon_budget:g}" * has_noise
    print(f"{POLICY_FILE}{written} allows modes {', '.join(policy.modes)}{budget}")


def accept(folder: SiteFolder, yes: Yes = False, has_all: AllTerms = False) -> None:
    """See what a new member list changes, and accept it; a running node reloads it."""
    from gosta.net.deploy import enrolment

    proposal = enrolment.read_proposed(folder)
    if proposal is None:
        print(f"{folder}: there is no list that was not accepted yet")
        return
    _accept(folder, proposal, yes, has_all)
    print(f"{folder}: accepted; a running node reloads it")


def leave(
    folder: SiteFolder,
    back: Annotated[bool, "The site stays: it contributes again, and no longer agrees."] = False,
    yes: Annotated[bool, "Leave without being asked."] = False,
) -> None:
    """Contribute to no further private sums, and agree that the site's last sums can be computed.

    So the others need not wait for agreements: everybody who has the totals with and without the
    site can compute its exact sums, unless they have noise. A running node sees it within seconds.
    """
    from gosta.net.agreements import set_leaving
    from gosta.net.deploy.leaving import consequence, find_leaving

    name, has_noise = find_leaving(folder)
    if back:
        set_leaving(folder, False, name)
        print(
            f"{folder}: {name} stays; sums that were computed from totals without it remain known"
        )
        return
    print(f"{name} contributes to no further epoch.")
    if not has_noise:
        print(consequence(name))
        print("There is no way back once a total without it is known.")
    options.confirm(f"Does {name} leave?", yes)
    set_leaving(folder, True, name)
    print(
        f"{folder}: {name} leaves; a running node sees it by itself, and tells the others: stop it "
        "only then"
    )
    print(f"next, at the coordinator: gosta network remove NETWORK {name}")


def _accept(folder: Path, proposal: Proposal, yes: bool, has_all: bool) -> None:
    from gosta.net.deploy import enrolment, summary
    from gosta.net.members import list_fingerprint

    old, new = proposal.old, proposal.signed.list
    if old == new:
        fingerprint = list_fingerprint(new)
        print(f"member list {new.serial} ({fingerprint}) is the one that was accepted already")
        enrolment.accept(folder, proposal)
        return
    print(summary.list_summary(new, has_all))
    for line in enrolment.own_settings(folder, new):
        print(f"different in this site's node.toml: {line}")
    if old is not None:
        print("changes:")
        for line in enrolment.differences(old, new) or ["none"]:
            print(f"  {line}")
    options.confirm("Accept these members, and what they compute?", yes)
    enrolment.accept(folder, proposal)
