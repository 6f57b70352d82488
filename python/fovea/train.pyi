import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Protocol, Sequence, Union

PathLike = Union[str, "os.PathLike[str]"]

class Outcome(NamedTuple):
    outcome: str
    step: int
    parameters: int
    best: Optional[float]
    weights_step: int
    averaged: int
    advice: str

def settings(task: str) -> List[Dict[str, Any]]: ...

class Training(Protocol):
    def __call__(
        self,
        train: Union[PathLike, Sequence[PathLike]],
        out: PathLike,
        valid: Union[PathLike, Sequence[PathLike], None] = None,
        *,
        preset: Optional[str] = None,
        config: Union[Dict[str, Any], PathLike, None] = None,
        callback: Optional[Callable[[Dict[str, Any]], None]] = None,
        progress: bool = False,
        threads: int = 0,
        **settings: Any,
    ) -> Outcome: ...

caption: Training
classify: Training
clip: Training
glimpse: Training
image: Training
partition: Training
pretrain: Training
series: Training
translate: Training
