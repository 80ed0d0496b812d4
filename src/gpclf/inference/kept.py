"""The named tuples that units of a fit give, or loops come to: what a journal's file may hold."""

from gpclf.gaussian import Natural
from gpclf.inference.context import Outcome
from gpclf.inference.decoupled import DecoupledForm, Slopes
from gpclf.inference.decoupled_hyper import LearnedDecoupled
from gpclf.inference.drivers.epochs import EpochReached, Epochs
from gpclf.inference.drivers.rounds import Learned, RoundReached
from gpclf.inference.factored import Factored
from gpclf.inference.history import Told
from gpclf.inference.hyper import Evaluation, Improved
from gpclf.inference.left_out import RowScores
from gpclf.inference.loo import LeaveOneOut
from gpclf.inference.natural import Settled, Start
from gpclf.inference.passes import Pass
from gpclf.inference.rules import Held, Seen
from gpclf.inference.selection import Selection, Tried
from gpclf.inputs import Features
from gpclf.likelihoods import Sites
from gpclf.model import Theta

TUPLES = (
    DecoupledForm,
    EpochReached,
    Epochs,
    Evaluation,
    Factored,
    Features,
    Held,
    Improved,
    Learned,
    LearnedDecoupled,
    LeaveOneOut,
    Natural,
    Outcome,
    Pass,
    RoundReached,
    RowScores,
    Seen,
    Selection,
    Settled,
    Sites,
    Slopes,
    Start,
    Theta,
    Told,
    Tried,
)
