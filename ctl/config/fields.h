// Internal to this room: fields that several documents share, row by row.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/config/documents.h"
#include "lib/component/document_reader.h"

namespace keelson::ctl {

void ReadFields(component::DocumentReader& in, Argument& out);
void ReadFields(component::DocumentReader& in, Taint& out);

void ReadNode(component::DocumentReader& in, NodeRegistration& out, std::vector<std::string>& warnings);
void ReadTimeouts(component::DocumentReader& in, Timeouts& out);
// Fields that change nothing with Keelson: one warning for each that is set, with `why`.
void WithoutEffect(component::DocumentReader& in, std::initializer_list<std::string_view> fields,
                   std::string_view why, std::vector<std::string>& warnings);
void ReadPatches(component::DocumentReader& in, std::string& directory);

// kInvalid with everything that is wrong, as kubeadm's strict decoding tells it.
Result<> Refuse(const component::DocumentProblems& problems, std::string_view kind);

}  // namespace keelson::ctl
