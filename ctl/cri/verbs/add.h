// crictl's verbs as verbs of nodectl (AddCriVerbs() of ctl/cri_verbs.h).
#pragma once

namespace keelson::ctl {

struct CriVerbs;

// Each adds the verbs that its file has.
void AddCriPods(const CriVerbs& verbs);
void AddCriPs(const CriVerbs& verbs);
void AddCriImages(const CriVerbs& verbs);
void AddCriInspect(const CriVerbs& verbs);
void AddCriStop(const CriVerbs& verbs);
void AddCriRemove(const CriVerbs& verbs);
void AddCriRemoveImages(const CriVerbs& verbs);
void AddCriPull(const CriVerbs& verbs);
void AddCriCreate(const CriVerbs& verbs);
void AddCriStats(const CriVerbs& verbs);
void AddCriInfo(const CriVerbs& verbs);
void AddCriLogs(const CriVerbs& verbs);
void AddCriExec(const CriVerbs& verbs);
void AddCriAttach(const CriVerbs& verbs);
void AddCriPortForward(const CriVerbs& verbs);
void AddCriEvents(const CriVerbs& verbs);
void AddCriUpdate(const CriVerbs& verbs);

}  // namespace keelson::ctl
