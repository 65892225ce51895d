"""Why a node of private sums is in its state, in words for its operator."""

from __future__ import annotations

from gosta.net.protocol.sums import SumPeer

RISK = "sums could be computed from the totals with and without it"


def explain(peer: SumPeer) -> str:
    """Return the reason of the state; it may tell the number of this site's rows, so it is for this site only."""
    epoch = peer.current
    if peer.conflict:
        return peer.conflict
    if epoch.refusals and peer.needed_agreements:
        return "; ".join(_explain_need(peer, name) for name in peer.needed_agreements)
    if epoch.suppressed:
        return (
            f"suppressed: {epoch.suppressed}"
            if peer.source.agreed.leaves
            else f"suppressed by policy: {epoch.suppressed}"
        )
    if epoch.refusals:
        return f"suppressed by the policy of {', '.join(epoch.refusals)}"
    if epoch.implausible is not None:
        return _explain_implausible(peer)
    if peer.is_left_out() and peer.has_noise:
        return "left out of this epoch; the status of others says why"
    if peer.is_left_out():
        return f"left out of this epoch, as its {RISK}; if it agrees to that: {_command(peer.name)}"
    match peer.state():
        case "joining":
            silent = [name for name in peer.members if name not in epoch.joins]
            return f"not joined yet: {', '.join(silent)}" if silent else ""
        case "contributing":
            return f"no contribution yet of {', '.join(peer.missing())}"
    return ""


def _command(name: str) -> str:
    return f"gosta network agree FOLDER {name}"


def _explain_need(peer: SumPeer, name: str) -> str:
    waiting = [refusing for refusing, one in peer.current.refusals.items() if name in one.needs]
    who = f"{', '.join(waiting)} {'waits' if len(waiting) == 1 else 'wait'}"
    if name == peer.name:
        is_seen = name in peer.missing_agreements(peer.current.participants)
        doubt = "" if is_seen else " (which this site cannot tell: it has not seen such totals)"
        return f"{who}, since this site's {RISK}{doubt}; to agree: {_command(name)}"
    if peer.name not in waiting:
        return f"{who}, since {name}'s {RISK}"
    if name in peer.current.participants:
        return f"{name} has to agree there, since its {RISK}: {_command(name)}"
    return f"{name} takes no part, and its {RISK}; wait for it, or agree to go on without it: {_command(name)}"


def _explain_implausible(peer: SumPeer) -> str:
    round_ = peer.current.implausible
    if peer.name in peer.missing() and round_ is not None and (reason := peer.opening_over_budget(round_)):
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
