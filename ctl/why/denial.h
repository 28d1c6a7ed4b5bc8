// Why the API server refuses to create an object, by the words of its refusal. Pure.
#pragma once

#include <string>

#include "ctl/problem.h"

namespace keelson::ctl {

// `what`: the object and what has failed, "ReplicaSet default/web-1 cannot create its pods". `refusal`: the API server's
// message, which becomes the evidence.
Problem JudgeRefusal(const std::string& what, const std::string& ns, const std::string& refusal);

}  // namespace keelson::ctl
