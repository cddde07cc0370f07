"""The resumable sampler: the draws of pm.sample, whatever happens to the process."""

import json
import os
import signal
import subprocess
import sys
import time
import warnings

from collections import deque
from pathlib import Path

import numpy as np
import pymc as pm
import pytest

from pymc.exceptions import SamplingError
from pymc.step_methods.compound import BlockedStep, StepMethodState
from pymc.step_methods.state import dataclass_state, equal_dataclass_values

from bayesstruct.runs import checkpoint as folders
from bayesstruct.runs.chains import restore, snapshot
from bayesstruct.runs.result import choose_chains, load_checkpoint
from bayesstruct.runs.sample import sample
from bayesstruct.runs.state import decode, encode, read_state, write_state

DRAWS, TUNE = 25, 20
SETTINGS = {
    "draws": DRAWS,
    "tune": TUNE,
    "chains": 2,
    "cores": 1,
    "progressbar": False,
    "compute_convergence_checks": False,
}
TIMINGS = {"perf_counter_diff", "perf_counter_start", "process_time_diff"}


class Crash(Exception):
    """Stands for whatever ends a process."""


def nuts_model():
    y = np.random.default_rng(0).normal(1.0, 2.0, 20)
    with pm.Model(coords={"group": ["a", "b"]}) as model:
        mu = pm.Normal("mu", 0, 2, dims="group")
        sigma = pm.HalfNormal("sigma", 3)
        pm.Deterministic("twice", 2 * mu, dims="group")
        pm.Normal("y", mu[np.arange(20) % 2], sigma, observed=y)
    return model


def compound_model():
    y = np.random.default_rng(1).poisson(4.0, 15)
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.4, shape=3)
        k = pm.Poisson("k", 2.0)
        b = pm.Normal("b", 0, 1, initval="prior")
        pm.Poisson("y", pm.math.exp(b + 0.3 * z.sum()) + k, observed=y)
    return model


def discrete_model():
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.3, shape=2)
        c = pm.Categorical("c", np.array([0.2, 0.3, 0.5]))
        pm.Normal("y", z.sum() + c, 1.0, observed=np.array([1.0, 2.0, 1.5]))
    return model


MODELS = {"nuts": nuts_model, "compound": compound_model, "discrete": discrete_model}


@pytest.fixture(scope="module", params=list(MODELS))
def case(request):
    """A model and its uninterrupted run."""
    model = MODELS[request.param]()
    return model, sample(**SETTINGS, random_seed=7, model=model)


@pytest.fixture(scope="module")
def discrete():
    model = discrete_model()
    return model, sample(**SETTINGS, random_seed=7, model=model)


def assert_same_draws(result, expected):
    for group in ("posterior", "sample_stats"):
        assert set(result[group].data_vars) == set(expected[group].data_vars)
        for name in set(expected[group].data_vars) - TIMINGS:
            # Bit for bit, not allclose.
            a, b = result[group][name].values, expected[group][name].values
            assert a.dtype == b.dtype, name
            np.testing.assert_array_equal(a, b, err_msg=name)


def crash_at(chain, iteration, error=Crash):
    def callback(trace, draw):
        if (draw.chain, draw.draw_idx) == (chain, iteration):
            raise error

    return callback


# ---- the same draws --------------------------------------------------------------------------


@pytest.mark.chain
def test_draws_are_those_of_pm_sample(case):
    model, ours = case
    settings = {k: v for k, v in SETTINGS.items() if k != "compute_convergence_checks"}
    theirs = pm.sample(
        **settings,
        random_seed=7,
        model=model,
        nuts_sampler="pymc",
        quiet=True,
        compute_convergence_checks=False,
    )
    assert_same_draws(ours, theirs)
    assert set(ours.children) == set(theirs.children)
    assert ours["posterior"].sizes == theirs["posterior"].sizes
    assert ours["posterior"].attrs["tuning_steps"] == TUNE


@pytest.mark.chain
def test_crashes_leave_no_trace_in_the_result(case, tmp_path):
    model, expected = case
    settings = {**SETTINGS, "random_seed": 7, "model": model, "checkpoint": tmp_path}
    # In warm-up, at the first draw after it, and in the second chain.
    for chain, iteration in [(0, 12), (0, TUNE), (1, TUNE + 9)]:
        with pytest.raises(Crash):
            sample(**settings, checkpoint_every=0.0, callback=crash_at(chain, iteration))
    assert_same_draws(sample(**settings), expected)


@pytest.mark.chain
def test_crash_before_the_first_saved_state(discrete, tmp_path):
    model, expected = discrete
    settings = {**SETTINGS, "random_seed": 7, "model": model, "checkpoint": tmp_path}
    with pytest.raises(Crash):
        sample(**settings, checkpoint_every=1e9, callback=crash_at(1, TUNE + 9))
    assert [folders.iteration_of(tmp_path, chain)[0] for chain in range(2)] == [DRAWS + TUNE, 0]
    assert_same_draws(sample(**settings), expected)


@pytest.mark.chain
def test_result_does_not_depend_on_the_number_of_processes(case):
    model, expected = case
    settings = {**SETTINGS, "cores": 2}
    assert_same_draws(sample(**settings, random_seed=7, model=model), expected)


@pytest.mark.chain
def test_chains_and_seeds_differ(discrete):
    model, first = discrete
    other = sample(**SETTINGS, random_seed=8, model=model)
    c = first["posterior"]["c"].values
    assert not np.array_equal(c[0], c[1])
    assert not np.array_equal(c, other["posterior"]["c"].values)


@pytest.mark.chain
def test_moments_of_a_known_normal_posterior():
    y = np.array([1.0, 2.0, 4.0, 1.0])
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 2)
        pm.Normal("y", mu, 1, observed=y)
    idata = sample(1000, tune=500, chains=2, cores=1, random_seed=5, progressbar=False, model=model)
    precision = 1 / 4 + len(y)
    draws = idata["posterior"]["mu"]
    # Four Monte Carlo standard errors, with an effective sample size of at least 400.
    assert abs(float(draws.mean()) - y.sum() / precision) < 4 * precision**-0.5 / 20
    assert abs(float(draws.std()) * precision**0.5 - 1) < 4 / np.sqrt(2 * 400)
    assert {"diverging", "lp", "step_size"} <= set(idata["sample_stats"].data_vars)


# ---- a process that is really killed ---------------------------------------------------------


@dataclass_state
class WalkState(StepMethodState):
    steps: int
    history: object


class Walk(BlockedStep):
    """A random walk in plain NumPy, as our step methods are; slow on demand."""

    name = "walk"
    stats_dtypes_shapes = {"steps": (int, [])}
    _state_class = WalkState
    pause = 0.0

    def __init__(self, vars, model=None, **kwargs):
        self.vars = [model.rvs_to_values.get(v, v) for v in vars]
        self.rng, self.steps, self.history = np.random.default_rng(), 0, deque(maxlen=3)

    def setup_chain(self, rng, tune, draws):
        super().setup_chain(rng, tune, draws)
        self.steps, self.history = 0, deque(maxlen=3)

    def step(self, point):
        time.sleep(self.pause)
        x = point["x"]
        pull = np.mean(self.history, axis=0) if self.history else 0.0
        new = 0.9 * x - 0.1 * pull + self.rng.normal(size=x.shape)
        self.steps += 1
        self.history.append(new)
        return {**point, "x": new}, [{"steps": self.steps}]


def walk_settings(**more):
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        step = Walk([x], model=model)
    return {**SETTINGS, "draws": 300, "random_seed": 3, "model": model, "step": step, **more}


SCRIPT = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("walk", sys.argv[1])
walk = importlib.util.module_from_spec(spec)
spec.loader.exec_module(walk)
walk.Walk.pause = 0.02
walk.sample(**walk.walk_settings(cores=2, checkpoint=sys.argv[2], checkpoint_every=0.05))
"""


def wait_for(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def children(pid):
    return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.chain
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("victim", ["parent", "worker"])
def test_kill_9_and_resume(victim, tmp_path):
    folder = tmp_path / "run"
    command = [sys.executable, "-c", SCRIPT, __file__, str(folder)]
    process = subprocess.Popen(
        command, start_new_session=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: _draws_on_disk(folder) >= 20, 60)
        workers = children(process.pid)
        assert len(workers) == 2
        os.kill(workers[0] if victim == "worker" else process.pid, signal.SIGKILL)
        process.wait(20)
        wait_for(lambda: not any(alive(pid) for pid in workers), 3)
        if victim == "worker":
            assert b"worker process died (exit code -9)" in process.stderr.read()
    finally:
        process.kill()
        process.stderr.close()
        process.wait()
    done = [folders.iteration_of(folder, chain)[0] for chain in range(2)]
    assert all(0 < n < TUNE + 300 for n in done)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the chains have different lengths
        partial = load_checkpoint(folder)
    resumed = sample(**walk_settings(checkpoint=folder))
    expected = sample(**walk_settings())
    assert_same_draws(resumed, expected)
    count = partial["posterior"].sizes["draw"]
    for chain in partial["posterior"]["chain"].values:
        np.testing.assert_array_equal(
            partial["posterior"]["x"].sel(chain=chain),
            expected["posterior"]["x"].sel(chain=chain)[:count],
        )


def _draws_on_disk(folder):
    if not (folder / "run.json").exists():
        return 0
    return min(folders.iteration_of(folder, chain)[0] for chain in range(2)) - TUNE


# ---- Ctrl-C and failures ---------------------------------------------------------------------


@pytest.mark.chain
@pytest.mark.parametrize("cores", [1, 2])
def test_ctrl_c_keeps_the_draws(cores, tmp_path, monkeypatch):
    def press(trace, draw):
        if (draw.chain, draw.draw_idx) == (1, TUNE + 200):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Walk, "pause", 0.002 if cores == 2 else 0.0)
    before = signal.getsignal(signal.SIGINT)
    settings = walk_settings(cores=cores, checkpoint=tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        idata = sample(**settings, callback=press)
    assert signal.getsignal(signal.SIGINT) is before
    done = [folders.iteration_of(tmp_path, chain)[0] - TUNE for chain in range(2)]
    assert 200 < done[1] < 300
    if done[0] != done[1]:
        assert any(f"chain 0: {done[0]}, chain 1: {done[1]}" in str(w.message) for w in caught)
    monkeypatch.setattr(Walk, "pause", 0.0)
    expected = sample(**walk_settings())
    count = idata["posterior"].sizes["draw"]
    for chain in idata["posterior"]["chain"].values:
        np.testing.assert_array_equal(
            idata["posterior"]["x"].sel(chain=chain), expected["posterior"]["x"][chain, :count]
        )
    assert_same_draws(sample(**settings), expected)


@pytest.mark.chain
def test_interrupt_during_warmup_raises_and_can_be_continued(discrete, tmp_path):
    model, expected = discrete
    settings = {**SETTINGS, "random_seed": 7, "model": model, "checkpoint": tmp_path}
    with pytest.raises(KeyboardInterrupt, match=r"no draws yet.*same call continues"):
        sample(**settings, callback=crash_at(0, 5, KeyboardInterrupt))
    with pytest.raises(ValueError, match="6 of 20 warm-up"):
        load_checkpoint(tmp_path)
    assert_same_draws(sample(**settings), expected)


class Fragile(Walk):
    limit = 10**9

    def step(self, point):
        if self.steps == self.limit:
            raise ArithmeticError("not today")
        return super().step(point)


@pytest.mark.chain
@pytest.mark.parametrize("cores", [1, 2])
def test_failing_step_names_the_chain_and_the_way_on(cores, tmp_path, monkeypatch):
    settings = walk_settings(cores=cores, checkpoint=tmp_path, checkpoint_every=0.0)
    settings["step"] = Fragile(settings["model"].free_RVs, model=settings["model"])
    monkeypatch.setattr(Fragile, "limit", TUNE + 9)
    with pytest.raises(SamplingError, match=r"Chain \d failed at draw 9 of 300: not today") as info:
        sample(**settings)
    assert isinstance(info.value.__cause__, ArithmeticError)
    assert "load_checkpoint" in str(info.value)
    failed = int(str(info.value).split("Chain ")[1].split()[0])  # another may have come less far
    assert folders.iteration_of(tmp_path, failed)[0] > TUNE
    monkeypatch.setattr(Fragile, "limit", 10**9)
    settings.pop("checkpoint_every")
    assert_same_draws(sample(**settings), sample(**walk_settings()))


@pytest.mark.chain
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("keep", [True, False])
def test_draws_before_a_failure_are_kept(cores, keep, tmp_path, monkeypatch):
    """Those after the last saved state too, and without a checkpoint in a folder that the message names."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    settings = walk_settings(cores=cores, chains=1)
    settings["step"] = Fragile(settings["model"].free_RVs, model=settings["model"])
    if keep:
        settings |= {"checkpoint": tmp_path / "run", "checkpoint_every": 1000.0}
    monkeypatch.setattr(Fragile, "limit", TUNE + 9)
    with pytest.raises(SamplingError, match="load_checkpoint reads them") as info:
        sample(**settings)
    [folder] = tmp_path.glob("run" if keep else "bayesstruct-*")
    assert repr(str(folder)) in str(info.value)
    kept = load_checkpoint(folder)["posterior"]["x"]
    monkeypatch.setattr(Fragile, "limit", 10**9)
    whole = sample(**walk_settings(cores=cores, chains=1))["posterior"]["x"]
    np.testing.assert_array_equal(kept, whole[:, :9])
    if keep:
        np.testing.assert_array_equal(sample(**settings)["posterior"]["x"], whole)
        assert not list(folder.rglob("failed.json"))


@pytest.mark.chain
def test_a_failure_in_the_warm_up_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    settings = walk_settings(cores=1)
    settings["step"] = Fragile(settings["model"].free_RVs, model=settings["model"])
    monkeypatch.setattr(Fragile, "limit", TUNE - 3)
    with pytest.raises(SamplingError, match="There are no draws yet"):
        sample(**settings)
    assert not list(tmp_path.glob("bayesstruct-*"))


@pytest.mark.chain
def test_callback_sees_the_draws_as_they_come():
    seen = []

    def callback(trace, draw):
        if draw.draw_idx in (TUNE + 1, TUNE + 299):
            values = trace.get_values("x")[len(trace) - 1].copy()
            seen.append((draw.chain, draw.is_last, len(trace), values, draw.point["x"]))

    sample(**walk_settings(cores=2), callback=callback)
    assert sorted(s[:3] for s in seen) == [
        (0, False, 2),
        (0, True, 300),
        (1, False, 2),
        (1, True, 300),
    ]
    for *_, stored, told in seen:
        np.testing.assert_array_equal(stored, told)


# ---- the folder ------------------------------------------------------------------------------


@pytest.fixture
def finished(discrete, tmp_path):
    model, expected = discrete
    settings = {**SETTINGS, "random_seed": 7, "model": model, "checkpoint": tmp_path / "run"}
    sample(**settings)
    return settings, expected


@pytest.mark.chain
def test_finished_run_returns_at_once(finished):
    settings, expected = finished
    started = time.monotonic()
    again = sample(**settings, callback=crash_at(0, 0))
    assert time.monotonic() - started < 2.0  # nothing is compiled or drawn
    assert_same_draws(again, expected)
    assert_same_draws(load_checkpoint(settings["checkpoint"]), expected)


@pytest.mark.chain
def test_settings_may_be_left_out_when_resuming(finished):
    settings, expected = finished
    for name in ("random_seed", "chains"):
        settings.pop(name)
    assert_same_draws(sample(**settings), expected)


@pytest.mark.chain
def test_labels_survive_without_the_model(tmp_path):
    model = nuts_model()
    idata = sample(
        **{**SETTINGS, "draws": 5, "tune": 5}, model=model, checkpoint=tmp_path, var_names=["twice"]
    )
    alone = load_checkpoint(tmp_path)
    assert list(alone["posterior"].data_vars) == ["twice"]
    assert list(alone["posterior"]["group"].values) == ["a", "b"]
    assert set(alone.children) == {"posterior", "sample_stats"}
    assert "observed_data" in load_checkpoint(tmp_path, model).children
    assert_same_draws(alone, idata)


@pytest.mark.chain
def test_files_are_arrays_and_json_only(finished):
    folder = Path(finished[0]["checkpoint"])
    files = [f for f in folder.rglob("*") if f.is_file() and f.name != "lock"]
    assert {f.suffix for f in files} == {".npy", ".npz", ".json"}
    for file in files:
        if file.suffix == ".json":
            json.loads(file.read_text())
        elif file.suffix == ".npy":
            assert not np.load(file, allow_pickle=False).dtype.hasobject
        else:
            with np.load(file, allow_pickle=False) as content:
                arrays = {name: content[name] for name in content.files}
            json.loads(arrays["json"].tobytes())


@pytest.mark.chain
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"draws": 41}, "draws is 25 there and 41 here"),
        ({"tune": 31}, "tune is 20 there and 31 here"),
        ({"chains": 3}, "chains is 2 there and 3 here"),
        ({"random_seed": 1}, "random_seed differs"),
        ({"var_names": ["c"]}, r"var_names is \['z', 'c'\] there"),
        ({"model": compound_model}, "'b' is in only one of the models"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_another_run_is_refused(finished, change, message):
    if "model" in change:
        change = {"model": change["model"]()}
    with pytest.raises(ValueError, match=message) as info:
        sample(**{**finished[0], **change})
    assert "delete this one" in str(info.value)


@pytest.mark.chain
@pytest.mark.parametrize(
    ("prior", "y", "message"),
    [
        (0.3, [1.0, 2.0, 9.5], "observed values of 'y' differ"),
        (0.7, [1.0, 2.0, 1.5], "definition of 'z' differs"),
    ],
)
def test_another_model_of_the_same_shape_is_refused(finished, prior, y, message):
    with pm.Model() as model:
        z = pm.Bernoulli("z", prior, shape=2)
        c = pm.Categorical("c", np.array([0.2, 0.3, 0.5]))
        pm.Normal("y", z.sum() + c, 1.0, observed=np.array(y))
    with pytest.raises(ValueError, match=message):
        sample(**{**finished[0], "model": model})
    with pytest.raises(ValueError, match=message):
        load_checkpoint(finished[0]["checkpoint"], model)


@pytest.mark.chain
def test_the_same_model_built_again_is_accepted(finished):
    settings, expected = finished
    assert_same_draws(sample(**{**settings, "model": discrete_model()}), expected)


@pytest.mark.chain
def test_other_step_method_is_refused(tmp_path):
    settings = walk_settings(checkpoint=tmp_path)
    with pytest.raises(Crash):
        sample(**settings, callback=crash_at(0, 3))
    settings.pop("step")
    with pytest.raises(ValueError, match=r"step methods were \[\['Walk'"):
        sample(**settings)


@pytest.mark.chain
def test_a_run_goes_on_without_statistics_that_its_step_did_not_report_at_first(
    tmp_path, monkeypatch
):
    expected = sample(**walk_settings())
    with pytest.raises(Crash):
        sample(**walk_settings(checkpoint=tmp_path), checkpoint_every=0.0, callback=crash_at(1, 40))
    own = Walk.step

    def step(self, point):
        point, [stats] = own(self, point)
        return point, [{**stats, "more": 1.0}]

    known = Walk.stats_dtypes_shapes
    monkeypatch.setattr(Walk, "stats_dtypes_shapes", {**known, "more": (float, [])})
    monkeypatch.setattr(Walk, "step", step)
    assert_same_draws(sample(**walk_settings(checkpoint=tmp_path)), expected)


@pytest.mark.chain
def test_damaged_state_falls_back_to_the_older_one(discrete, tmp_path):
    model, expected = discrete
    settings = {**SETTINGS, "random_seed": 7, "model": model, "checkpoint": tmp_path}
    with pytest.raises(Crash):
        sample(**settings, checkpoint_every=0.0, callback=crash_at(0, TUNE + 14))
    chain = tmp_path / "chain.0"
    newest = max(chain.glob("state.*.npz"), key=lambda f: read_state(f)[0]["iteration"])
    data = newest.read_bytes()
    newest.write_bytes(data[: len(data) // 2])
    assert folders.iteration_of(tmp_path, 0)[0] == TUNE + 13
    assert_same_draws(sample(**settings), expected)


@pytest.mark.chain
def test_damaged_files_are_named(finished):
    settings, expected = finished
    chain = Path(settings["checkpoint"]) / "chain.0"
    states = sorted(chain.glob("state.*.npz"))
    for state in states:
        state.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match=r"state\.0\.npz is damaged.*Delete the state files"):
        sample(**settings)
    for state in states:  # the remedy of the message
        state.unlink()
    assert_same_draws(sample(**settings), expected)
    draws = next(chain.glob("posterior.*.npy"))
    draws.write_bytes(draws.read_bytes()[:-8])
    with pytest.raises(ValueError, match="missing or damaged"):
        sample(**settings)
    (chain.parent / "run.json").write_text("{")
    with pytest.raises(ValueError, match=r"run\.json is damaged"):
        sample(**settings)


@pytest.mark.chain
def test_folders_that_cannot_be_used(discrete, tmp_path, monkeypatch):
    settings = {**SETTINGS, "model": discrete[0]}
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(ValueError, match="is a file"):
        sample(**settings, checkpoint=file)
    with pytest.raises(ValueError, match=r"not empty \(it holds 'file'\)"):
        sample(**settings, checkpoint=tmp_path)
    with pytest.raises(FileNotFoundError, match="not a checkpoint"):
        load_checkpoint(tmp_path / "nowhere")
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr(folders.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(OSError, match=r"draws need .* GB are free: choose another"):
        sample(**settings, checkpoint=tmp_path / "full")


@pytest.mark.chain
def test_disc_that_fills_up_while_space_is_claimed(discrete, tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folders.os, "posix_fallocate", refuse, raising=False)
    with pytest.raises(OSError, match="No space left"):
        sample(**SETTINGS, model=discrete[0], checkpoint=tmp_path / "full")
    assert not list((tmp_path / "full").glob("chain.*"))


def test_two_processes_cannot_write_the_same_folder(tmp_path):
    with folders.locked(tmp_path):
        with pytest.raises(ValueError, match="in use by another running process"):
            with folders.locked(tmp_path, patience=0.0):
                pass
    with folders.locked(tmp_path, patience=0.0):
        pass


@pytest.mark.chain
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"draws": 0}, "draws must be an integer of at least 1"),
        ({"tune": -1}, "tune must be"),
        ({"chains": 1.5}, "chains must be"),
        ({"var_names": ["q"]}, r"no unobserved variable \['q'\]"),
        ({"walk": {"a": 1}}, "step_kwargs"),
    ],
)
def test_arguments_are_checked(discrete, arguments, message):
    with pytest.raises(ValueError, match=message):
        sample(**{**SETTINGS, **arguments}, model=discrete[0])


@pytest.mark.chain
def test_unsaveable_state_is_refused_at_the_start(tmp_path):
    settings = walk_settings(checkpoint=tmp_path)
    settings["step"].history = object()
    with pytest.raises(TypeError, match=r"history is a object, which cannot be written"):
        sample(**settings)


@pytest.mark.chain
def test_progress_bar_runs(discrete, capsys):
    sample(**{**SETTINGS, "progressbar": "combined"}, random_seed=7, model=discrete[0])
    assert "Draw" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({0: 10, 1: 10}, ([0, 1], 10)),
        ({0: 10, 1: 0}, ([0], 10)),
        ({0: 4, 1: 10, 2: 6}, ([0, 1, 2], 4)),
        ({0: 0, 1: 0}, ([0, 1], 0)),
    ],
)
def test_choice_of_chains(rows, expected):
    assert choose_chains(rows) == expected


# ---- states ----------------------------------------------------------------------------------


def test_state_of_nuts_survives_the_file(tmp_path):
    with nuts_model() as model:
        step, fresh = pm.NUTS(), pm.NUTS()
        point = model.initial_point()
    step.setup_chain(np.random.default_rng(2), 130, 10)
    for i in range(135):  # past an adaptation window, into the draws
        if i == 130:
            step.stop_tuning()
        point, _ = step.step(point)
    write_state(tmp_path / "state.npz", {"iteration": 135}, (point, snapshot(step)))
    header, tree, arrays = read_state(tmp_path / "state.npz")
    stored, saved = decode(tree, arrays, like=(point, snapshot(fresh)))
    assert header["iteration"] == 135
    assert equal_dataclass_values(saved[0], step.sampling_state)
    restore(fresh, saved)
    for _ in range(5):
        (point, a), (stored, b) = step.step(point), fresh.step(stored)
        for name in point:
            np.testing.assert_array_equal(point[name], stored[name])
        assert a[0]["model_logp"] == b[0]["model_logp"]


def test_values_of_all_kinds_survive():
    value = {
        "none": None,
        "numbers": [True, 2**130, -0.0, float("inf"), 1e-320, 0.1],
        "scalars": (np.float32(0.1), np.int8(-3), np.bool_(True), np.datetime64("2026-01-01")),
        "arrays": [np.zeros((0, 3)), np.array(2.5), np.arange(6)[::2]],
        "ragged": np.array([[1, 2], None], dtype=object),
        ("a", 1): deque([1, 2], maxlen=4),
        "sets": [{1, 2}, frozenset("x")],
        "bytes": b"\x00\xff",
        "dtype": np.dtype("float32"),
        "generator": np.random.Generator(np.random.Philox(5)),
    }
    tree, arrays = encode(value)
    back = decode(json.loads(json.dumps(tree, allow_nan=False)), arrays)
    first, second = back.pop("generator"), value.pop("generator")
    assert first.normal() == second.normal()
    assert first.spawn(1)[0].normal() == second.spawn(1)[0].normal()
    assert back.pop("ragged").tolist() == value.pop("ragged").tolist()
    assert equal_dataclass_values(back, value)
    assert back[("a", 1)].maxlen == 4
    np.testing.assert_array_equal(decode(*encode(np.array(["ä", "b"]))), ["ä", "b"])
    assert np.isnan(decode(*encode(float("nan"))))


def test_a_file_cannot_name_what_is_called():
    tree, arrays = encode(np.random.default_rng(0))
    text = json.dumps(tree).replace('"PCG64"', '"seed"')
    with pytest.raises(ValueError, match="'seed' is not a NumPy bit generator"):
        decode(json.loads(text), arrays)
    with pytest.raises(ValueError, match="unknown entry 'object'"):
        decode({"object": "os.system"}, {})


def test_state_of_another_step_is_refused():
    state = WalkState(var_names=["x"], rng=None, steps=1, history=None)
    tree, arrays = encode(state)
    other = StepMethodState(var_names=["x"], rng=None)
    with pytest.raises(ValueError, match="another step method or another version"):
        decode(tree, arrays, like=other)
