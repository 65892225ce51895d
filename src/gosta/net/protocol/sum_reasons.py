"""Why a node of private sums is in its state, in words for its operator."""

from __future__ import annotations

from gosta.net.protocol.sums import SumPeer

RISK = "sums could be computed from the totals with and without it"


def explain(peer: SumPeer) -> str:
    """Return the reason of the state; it may tell the number of this site's rows, so it is for this site only."""
    epoch = peer.current
    if peer.conflict:
        return peer.conflict
    if others := peer.other_lists():
        lists = ", ".join(f"{name} has list {epoch.joins[name].list_serial}" for name in others)
        return f"this site has member list {peer.trust.serial}, {lists}; at all sites: gosta node accept FOLDER"
    if epoch.suppressed and not (peer.name in epoch.refusals and epoch.refusals[peer.name].needs):
        return f"declined by this site: {epoch.suppressed}"
    if epoch.refusals:
        waiting = [_explain_need(peer, name) for name in peer.needed_agreements]
        others = [
            name for name, one in epoch.refusals.items() if not one.needs and name != peer.name
        ]
        declined = f"declined by {', '.join(others)}, whose own status says why"
        return "; ".join([*waiting, *([declined] if others else [])])
    if epoch.implausible is not None:
        return _explain_implausible(peer)
    if peer.is_left_out():
        return _explain_left_out(peer)
    match peer.state():
        case "joining":
            if peer.name not in epoch.joins:
                return "this site has not joined yet"
            silent = [name for name in peer.members if name not in epoch.joins]
            waits = f"waits for {peer.source.settings.deadline_seconds:g} s at most"
            remove = f"to go on without it at once, the coordinator: gosta network remove NETWORK {min(silent, default='')}"
            return f"not joined yet: {', '.join(silent)}; {waits}; {remove}" if silent else ""
        case "contributing":
            return f"no contribution yet of {', '.join(peer.missing())}"
    return ""


def _explain_left_out(peer: SumPeer) -> str:
    if peer.has_noise:
        return "left out of this epoch; the status of others says why"
    return f"left out of this epoch, as its {RISK}; if it agrees to that: {_command(peer.name)}"


def _command(name: str) -> str:
    return f"gosta network agree FOLDER {name}"


def _explain_need(peer: SumPeer, name: str) -> str:
    waiting = [refusing for refusing, one in peer.current.refusals.items() if name in one.needs]
    who = f"{', '.join(waiting)} {'waits' if len(waiting) == 1 else 'wait'}"
    join = peer.current.joins.get(name)
    if peer.memory.companions and name not in peer.missing_agreements(peer.current.participants):
        return f"{who} for an agreement about {name}, and this site finds no reason for that"
    if name == peer.name:
        return f"{who}, since this site's {RISK}; to agree: {_command(name)}"
    if join is not None and join.key and not join.agrees:
        return f"{who}, since {name}'s {RISK}; it has to agree, there: gosta network agree ITS_FOLDER {name}"
    if peer.name not in waiting:
        return f"{who}, since {name}'s {RISK}"
    if join is not None and join.key:
        what = f"{name} has another key than in earlier totals, and the former site's {RISK}"
        return f"{what}; if it is the same site, or to go on all the same: {_command(name)}"
    return f"{name} takes no part, and its {RISK}; wait for it, or agree to go on without it: {_command(name)}"


def _explain_implausible(peer: SumPeer) -> str:
    round_ = peer.current.implausible
    if (
        peer.name in peer.missing()
        and round_ is not None
        and (reason := peer.opening_over_budget(round_))
    ):
        return f"the total cannot be a sum over rows, and this site cannot help to find out why: {reason}"
    if lacking := peer.missing():
        return f"the total cannot be a sum over rows; not opened yet by {', '.join(lacking)}"
    if peer.current.suspects:
        pairs = " and ".join(f"{first} or {second}" for first, second in peer.current.suspects)
        return f"the total cannot be a sum over rows: {pairs} deviates; the coordinator has to remove one"
    return (
        "the total cannot be a sum over rows, and nobody deviates by so much that it can be said who; the coordinator "
        "has to leave out sites one after the other"
    )
