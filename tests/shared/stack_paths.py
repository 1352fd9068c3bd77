"""The functions of a stack that a campaign keeps, one by one."""

from blockyard.analysis.sites import NO_STACK, NONE, Label, Sites


def name_of(found: Sites, node: int) -> str:
    """Of the function that speaks for the stack."""
    return NO_STACK if node == NONE else found.texts[found.label["function"][found.speaker[node]]]


def path_of(found: Sites, node: int) -> list[Label]:
    """All functions of the stack, innermost first."""
    path = []
    while node != NONE:
        frame = found.frame[node]
        for function, file, line, module in found.label[
            found.first_label[frame] : found.first_label[frame + 1]
        ].tolist():
            path.append(Label(found.texts[function], found.texts[file], line, found.texts[module]))
        node = int(found.parent[node])
    return path
