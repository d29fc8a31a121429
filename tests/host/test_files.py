"""What a folder that can't be made proposes: another place, or the same call once more."""

import pytest

from debug_spyre.host.files import make_folder
from debug_spyre.vocabulary.errors import EnvironmentTroubleError


def test_a_folder_that_another_made_first_asks_for_the_same_call_again(tmp_path):
    make_folder(tmp_path / "x", exclusive=True)
    with pytest.raises(EnvironmentTroubleError) as refused:
        make_folder(tmp_path / "x", exclusive=True)
    assert "same call again" in refused.value.next
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentTroubleError) as refused:
        make_folder(tmp_path / "file" / "y", exclusive=True)
    assert "DEBUG_SPYRE_LOGS" in refused.value.next
