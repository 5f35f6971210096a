"""The instruction sets that a numerics profile can name: how libraries are held to one, and whether it is there.

A wider processor is held to the declared set, so that its products are those of every machine that has it. A CUDA
device can't be held to another one: its set is its compute capability, `sm_90`, and only what is declared is compared.
"""

from __future__ import annotations

AVX2 = "AVX2"
AVX512_BF16 = "AVX512_BF16"
VARIABLES = {
    AVX2: {
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_CBWR": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
    },
    AVX512_BF16: {
        "ATEN_CPU_CAPABILITY": "avx512",
        "MKL_CBWR": "AVX512",
        "MKL_ENABLE_INSTRUCTIONS": "AVX512",
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16",
    },
}
"""What torch's libraries read at their start."""


def observed_instruction_set(declared: str | None, device: str = "cpu") -> str:
    """Return what torch uses in this process: on CUDA the device's capability; elsewhere the declared set if the
    processor has it, else torch's own name.
    """
    import torch  # noqa: PLC0415

    if device == "cuda":
        major, minor = torch.cuda.get_device_capability()
        return f"sm_{major}{minor}"
    seen = str(torch.backends.cpu.get_cpu_capability())
    if declared == AVX512_BF16 and seen == "AVX512" and torch.cpu._is_avx512_bf16_supported():
        return AVX512_BF16
    return seen


def has_instruction_set(declared: str) -> bool:
    """Whether the processor can be held to a set; one that is not known here is left to the worker's check."""
    import torch  # noqa: PLC0415

    checks = {AVX2: torch.cpu._is_avx2_supported, AVX512_BF16: torch.cpu._is_avx512_bf16_supported}
    return declared not in checks or bool(checks[declared]())
