"""`oversmoothing explorer`: the page where eigenvalues of H are dragged."""

from oversmoothing.commands import options as opt


def explorer(out: opt.Out = opt.RESULTS) -> None:
    """A page to drag eigenvalues of H and see what smooths.

    Change attention, mask, heads and depth too, and see the verdict, the discs, the tokens and
    three metrics. One file that asks no network; it computes in float64, in the browser.
    """
    from oversmoothing.paper_figures.explorer.explorer_page import write_explorer
    from oversmoothing.theory.support.files import output_folder

    print(f"wrote {write_explorer(output_folder(out))}")
