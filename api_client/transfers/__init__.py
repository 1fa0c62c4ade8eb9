"""Downloads and uploads of files behind presigned URLs; interrupted downloads resume in the same folder.

Use ``client.downloads`` (``api_client.transfers.downloads``); this package exports its records.
"""

from api_client.transfers.records import (
    DestinationExists as DestinationExists,
)
from api_client.transfers.records import (
    DownloadError as DownloadError,
)
from api_client.transfers.records import (
    DownloadPlan as DownloadPlan,
)
from api_client.transfers.records import (
    DownloadProgress as DownloadProgress,
)
from api_client.transfers.records import (
    DownloadReport as DownloadReport,
)
from api_client.transfers.records import (
    Existing as Existing,
)
from api_client.transfers.records import (
    FileProgress as FileProgress,
)
from api_client.transfers.records import (
    FileState as FileState,
)
from api_client.transfers.records import (
    NoArchive as NoArchive,
)
from api_client.transfers.records import (
    NoRoom as NoRoom,
)
from api_client.transfers.records import (
    OnProgress as OnProgress,
)
from api_client.transfers.records import (
    PlannedFile as PlannedFile,
)
from api_client.transfers.records import (
    RefusedName as RefusedName,
)
