from collections.abc import Sequence

from oversmoothing.experiments import remedies as remedies
from oversmoothing.experiments.forms.lasting_bound import lasting_bound as lasting_bound
from oversmoothing.experiments.forms.regions import (
    parameterisation as parameterisation,
    value_projection as value_projection,
)
from oversmoothing.experiments.forms.reparameterise import (
    Reparameterised as Reparameterised,
    reparameterise as reparameterise,
)
from oversmoothing.experiments.inspection.compare import (
    Comparison as Comparison,
    Stages as Stages,
    compare as compare,
    inspect_stages as inspect_stages,
)
from oversmoothing.experiments.inspection.inspect import inspect as inspect
from oversmoothing.experiments.inspection.report import Report as Report
from oversmoothing.experiments.inspection.watcher import Watcher as Watcher
from oversmoothing.experiments.ladder.climb import ladder as ladder
from oversmoothing.experiments.models.describe import describe as describe
from oversmoothing.experiments.models.sources import open_model as open_model
from oversmoothing.experiments.study.readings import readings_of as readings_of
from oversmoothing.layer import Layer as Layer, operator as operator
from oversmoothing.simulations.drawing.show import show as show
from oversmoothing.simulations.engine.evolve import evolve as evolve
from oversmoothing.simulations.engine.evolve_heads import (
    Drawn as Drawn,
    Fixed as Fixed,
    FromState as FromState,
    PerLayer as PerLayer,
    evolve_heads as evolve_heads,
)
from oversmoothing.simulations.engine.trajectory import Trajectory as Trajectory
from oversmoothing.simulations.state_metrics import metrics as metrics
from oversmoothing.theory.claims.golden import golden_case as golden_case
from oversmoothing.theory.proofs.kit import (
    Claim as Claim,
    by as by,
    draw as draw,
    exact as exact,
    given as given,
)
from oversmoothing.theory.support.errors import InputError as InputError
from oversmoothing.theory.verdict.answer import Verdict as Verdict
from oversmoothing.theory.verdict.symbolic.symbols import symbolic as symbolic
from oversmoothing.theory.verdict.verdict import heads_verdict as heads_verdict, verdict as verdict

__version__: str

def main(argv: Sequence[str] | None = None) -> int: ...
