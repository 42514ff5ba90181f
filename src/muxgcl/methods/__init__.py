"""The methods, one file each, and the registry that everything else takes them from.

What several methods share is in `parts`. CONTRIBUTING.md says how to add one.
"""

from muxgcl.methods.base import Context, Method
from muxgcl.methods.bgrl import Bgrl
from muxgcl.methods.blnn import Blnn
from muxgcl.methods.cca_ssg import CcaSsg
from muxgcl.methods.costa import Costa
from muxgcl.methods.deepwalk import Deepwalk
from muxgcl.methods.dgi import Dgi
from muxgcl.methods.dmon import Dmon
from muxgcl.methods.gae import Gae
from muxgcl.methods.gbt import Gbt
from muxgcl.methods.gca import Gca
from muxgcl.methods.ggd import Ggd
from muxgcl.methods.grace import Grace
from muxgcl.methods.homogcl import HomoGcl
from muxgcl.methods.ma_gcl import MaGcl
from muxgcl.methods.mux_gcl import MuxGcl
from muxgcl.methods.mux_hop import MuxHop
from muxgcl.methods.mvgrl import Mvgrl
from muxgcl.methods.node2vec import Node2vec
from muxgcl.methods.ns4gc import Ns4gc
from muxgcl.methods.progcl import ProGcl
from muxgcl.methods.random_gcn import RandomGcn
from muxgcl.methods.raw import Raw
from muxgcl.methods.sfa import Sfa
from muxgcl.methods.sgc import Sgc
from muxgcl.methods.sgrl import Sgrl
from muxgcl.methods.signa import Signa
from muxgcl.methods.sugrl import Sugrl
from muxgcl.methods.vgae import Vgae
from muxgcl.nn.objective import total

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        MuxGcl,
        MuxHop,
        Raw,
        RandomGcn,
        Sgc,
        Node2vec,
        Deepwalk,
        Gae,
        Vgae,
        Dgi,
        Grace,
        Mvgrl,
        Gca,
        Sugrl,
        Bgrl,
        Gbt,
        ProGcl,
        Costa,
        Sfa,
        HomoGcl,
        MaGcl,
        Dmon,
        CcaSsg,
        Ggd,
        Blnn,
        Sgrl,
        Ns4gc,
        Signa,
    )
}

__all__ = ["METHODS", "Context", "Method", "total"]
