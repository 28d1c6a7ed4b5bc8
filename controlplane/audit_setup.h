// Creates the auditor from the --audit-* flags.
#pragma once

#include <memory>

#include "controlplane/apiserver/audit/auditor.h"
#include "controlplane/options/options.h"

namespace keelson::controlplane {

// Null without a policy or without a backend.
Result<std::unique_ptr<apiserver::audit::Auditor>> MakeAuditor(const AuditOptions& options);

}  // namespace keelson::controlplane
