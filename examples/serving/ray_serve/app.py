"""A compiled network behind Ray Serve: `MODEL=model.so serve run app:app`; the body of a request is the raw input."""

import os

import numpy as np
from ray import serve
from starlette.requests import Request
from starlette.responses import Response

import qdialect


@serve.deployment
class Network:
    """Answers with the raw output of a network with one input and one output."""

    def __init__(self, path: str) -> None:
        self.network = qdialect.load(path)

    async def __call__(self, request: Request) -> Response:
        port, body = self.network.inputs[0], await request.body()
        if len(body) != np.prod(port.shape) * port.dtype.itemsize:
            return Response(f"expected {port.dtype}{list(port.shape)}, but got {len(body)} bytes", status_code=400)
        result = self.network(np.frombuffer(body, port.dtype).reshape(port.shape))
        return Response(result.tobytes(), media_type="application/octet-stream")


app = Network.bind(os.environ["MODEL"])
