"""`oversmoothing study`: trained models against hypotheses that were written before them."""

from typing import Annotated, Literal

from typer import Argument, Option

from oversmoothing.commands import options as opt


def study(
    name: Annotated[
        Literal[
            "data-efficiency", "corruption", "depth", "layernorm", "spectrum", "remedies", "all"
        ],
        Argument(
            metavar="STUDY",
            help="data-efficiency, corruption, depth, layernorm, spectrum, remedies or all.",
        ),
    ],
    protocol: Annotated[
        str | None,
        Option(
            metavar="NAME|FILE.toml",
            help="digits (default), cifar100, or your own seeds, design and hypotheses.",
        ),
    ] = None,
    workers: Annotated[
        int, Option(metavar="N", min=1, max=64, help="Processes that train at the same time.")
    ] = 1,
    estimate: Annotated[
        bool, Option("--estimate", help="Say how many runs there are and how long they take.")
    ] = False,
    so_far: Annotated[
        bool, Option("--so-far", help="Train nothing: tables of the runs that are finished.")
    ] = False,
    data_dir: opt.DataDir = None,
    device: opt.Device = "cpu",
    out: opt.Out = opt.RESULTS,
) -> None:
    """Do forms of H that cannot smooth train better: hypotheses first, then runs.

    Trains the models of a study and judges every hypothesis by its interval. Each run is kept as
    soon as it is finished; interrupted, the same command goes on. Writes study/STUDY.csv, its
    picture, runs.csv and hypotheses.csv into the folder of results; of other data than digits
    into study-DATA.
    """  # fmt: skip
    from oversmoothing.commands.tables import table_text
    from oversmoothing.experiments.models.pictures import real_inputs
    from oversmoothing.experiments.study.protocol import protocol as read
    from oversmoothing.experiments.study.study_files import folder_name, write_study
    from oversmoothing.experiments.study.study_runs import cost
    from oversmoothing.simulations.engine.problem import choose_device
    from oversmoothing.theory.support.files import output_folder

    chosen = read(protocol)
    studies: list[str] = chosen.studies if name == "all" else [name]
    results = output_folder(out, room=2**24)
    print(cost(chosen, studies, results, workers), flush=True)
    if estimate:
        return
    result = write_study(
        chosen, studies, results, workers=workers, data_dir=real_inputs(data_dir),
        device=str(choose_device(device)), so_far=so_far,
    )  # fmt: skip
    print(f"{result.text(table_text)}\nwrote {results / folder_name(chosen)}")
