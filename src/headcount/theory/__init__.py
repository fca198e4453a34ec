"""Executable theory: claims, hypotheses, verdicts, falsifier, certificates."""

from typing import TYPE_CHECKING

from ..core._facade import front_door

if TYPE_CHECKING:
    from ._arguments import given as given
    from ._audit import ask as ask
    from ._audit import audit as audit
    from ._certificate import Certificate as Certificate
    from ._certificate import certify as certify
    from ._certificate import read_certificate as read_certificate
    from ._claim import Bound as Bound
    from ._claim import Check as Check
    from ._claim import Claim as Claim
    from ._claim import Family as Family
    from ._claim import Hypothesis as Hypothesis
    from ._claim import Kind as Kind
    from ._claim import Sides as Sides
    from ._compare import compare as compare
    from ._count import Answer as Answer
    from ._count import theorem_answers as theorem_answers
    from ._errata import Erratum as Erratum
    from ._errata import errata as errata
    from ._errata import errata_page as errata_page
    from ._explain import explain as explain
    from ._facts import facts as facts
    from ._facts import recorded_answers as recorded_answers
    from ._falsify import falsify as falsify
    from ._fields import Choice as Choice
    from ._fields import Static as Static
    from ._forms import Form as Form
    from ._forms import false as false
    from ._iterates import iterates_of as iterates_of
    from ._iterates import stored_iterates as stored_iterates
    from ._judge_frequency import judge_frequency as judge_frequency
    from ._lemma import equality as equality
    from ._lemma import lemma as lemma
    from ._portable import export as export
    from ._practice import practice as practice
    from ._pytree import Batch as Batch
    from ._pytree import instance_class as instance_class
    from ._recheck import recheck as recheck
    from ._record import Record as Record
    from ._record import quantity as quantity
    from ._refuted import refuted_by_role as refuted_by_role
    from ._refuted import refuted_page as refuted_page
    from ._registry import claims as claims
    from ._search import Budget as Budget
    from ._setting import PlainSetting as PlainSetting
    from ._setting import resized as resized
    from ._sharpen import sharpen as sharpen
    from ._shipped import shipped_certificates as shipped_certificates
    from ._spaces import Ball as Ball
    from ._spaces import Box as Box
    from ._spaces import Fraction as Fraction
    from ._spaces import Integers as Integers
    from ._spaces import Orthogonal as Orthogonal
    from ._spaces import Positive as Positive
    from ._spaces import PositiveSemidefinite as PositiveSemidefinite
    from ._spaces import Reals as Reals
    from ._spaces import Signs as Signs
    from ._spaces import Simplex as Simplex
    from ._spaces import Size as Size
    from ._spaces import Space as Space
    from ._spaces import Sphere as Sphere
    from ._spaces import Tokens as Tokens
    from ._spaces_joint import Constants as Constants
    from ._spaces_joint import Parameters as Parameters
    from ._spaces_joint import Product as Product
    from ._statement import Statements as Statements
    from ._statement import decided as decided
    from ._subject import Observed as Observed
    from ._subject import Subject as Subject
    from ._table import Table as Table
    from ._verdict import Outcome as Outcome
    from ._verdict import Verdict as Verdict
    from ._verdict import judge as judge
    from ._verify import verify as verify
else:
    __getattr__, __dir__ = front_door(__name__)
