"""Define ``fleetmark predict``, which predicts results of stored machines and of language models on chips."""

from __future__ import annotations

from typing import Annotated

import typer

from fleetmark.cli.common import ROOT, AsDocument, DocumentFormat, Output, Root, message_console
from fleetmark.cli.help import App
from fleetmark.cli.reports import Lang
from fleetmark.cli.roots import results

app = App(
    default="benchmarks",
    help="Predict results that were not measured. `fleetmark predict -m M` is `fleetmark predict benchmarks -m M`.",
    no_args_is_help=True,
)


@app.command()
def benchmarks(
    machine: Annotated[str, typer.Option("--machine", "-m", help="The machine to predict: host=new1; gen=turin.")],
    target: Annotated[list[str] | None, typer.Option(help="Only benchmarks whose title matches a pattern.")] = None,
    baseline: Annotated[str | None, typer.Option("--baseline", "-b", help="The machines to compute ratios to.")] = None,
    family: Annotated[str, typer.Option(help="The label that identifies a machine family.")] = "gen",
    level: Annotated[float, typer.Option(min=0.5, max=0.99, help="Confidence level of the intervals.")] = 0.9,
    output: Output = None,
    root: Root = ROOT,
    as_: AsDocument = DocumentFormat.TABLE,
) -> None:
    """Predict the results of a machine in benchmarks that it has not run, from other machines.

    Examples: fleetmark predict --machine host=new1; fleetmark predict --machine host=new1 --baseline gen=icelake
    """
    from fleetmark.verbs import predict as predicting
    from fleetmark.verbs.documents import files

    documents_to_write = files(output)
    with results(root) as here:
        predictions = predicting.predict(here, machine, tuple(target or ()), baseline, family, level)
    predicting.show(predictions, as_.value, message_console(as_), documents_to_write)


@app.command()
def serve(
    model: Annotated[
        str, typer.Option("--model", help="A public model, such as gpt-oss-120b; a YAML file; or a config.json.")
    ],
    chip: Annotated[
        list[str] | None, typer.Option("--chip", help="The name of a GPU, as in its data sheet: H200; repeatable.")
    ] = None,
    machine: Annotated[
        str | None, typer.Option("--machine", "-m", help="Use the measured rates of these machines: host=gpu1.")
    ] = None,
    precision: Annotated[str, typer.Option(help="Precision of the weights: bf16, fp8 or fp4.")] = "fp8",
    tensor: Annotated[
        list[int] | None,
        typer.Option("--tp", min=1, max=1024, help="GPUs that share each layer (default: 1, 2, 4, 8)."),
    ] = None,
    experts: Annotated[
        list[int] | None,
        typer.Option("--ep", min=1, max=1024, help="Number of GPU groups between which experts are distributed."),
    ] = None,
    replicas: Annotated[
        list[int] | None, typer.Option("--dp", min=1, max=1024, help="Replicas of attention that share the experts.")
    ] = None,
    streams: Annotated[
        list[int] | None,
        typer.Option(min=1, max=100_000, help="Number of concurrent requests (default: 4, 8, ... 128)."),
    ] = None,
    prompt: Annotated[int, typer.Option(min=1, max=10_000_000, help="Number of tokens in a prompt.")] = 1024,
    answer: Annotated[int, typer.Option(min=1, max=10_000_000, help="Number of tokens in an answer.")] = 1024,
    engine: Annotated[str, typer.Option(help="The serving engine: vllm, sglang, trt, atom.")] = "",
    speed: Annotated[float, typer.Option(min=0.01, max=1e6, help="Tokens/s that each user needs.")] = 20.0,
    watts: Annotated[
        float | None,
        typer.Option(min=1, max=1e6, help="Power per GPU in W, including its share of the server and cooling."),
    ] = None,
    lang: Lang = "en",
    root: Root = ROOT,
    output: Output = None,
    as_: AsDocument = DocumentFormat.TABLE,
) -> None:
    """Predict LLM serving performance on GPUs: TTFT, TPOT, tokens/s per GPU and per MW, with intervals.

    Examples: fleetmark predict serve --model gpt-oss-120b --precision fp4 --chip H200 --chip B200 --engine vllm;
    fleetmark predict serve --model deepseek-r1 --chip MI355X --tp 8 --engine sglang -o serving.html
    """
    from fleetmark.planner.predict.serving.frontier import STREAMS
    from fleetmark.verbs import documents
    from fleetmark.verbs.predict_serve import Options, serve

    documents_to_write = documents.files(output, lang)
    options = Options(
        model=model,
        chips=chip or (),
        precision=precision,
        tensor=tensor or (1, 2, 4, 8),
        experts=experts or (1,),
        replicas=replicas or (1,),
        streams=sorted(set(streams or STREAMS)),
        prompt=prompt,
        answer=answer,
        engine=engine,
        speed=speed,
        watts=watts,
    )
    if machine:
        with results(root) as here:
            predicted = serve(options, here, machine)
    else:
        predicted = serve(options, None, None)
    documents.show(predicted, as_.value, message_console(as_), documents_to_write)
