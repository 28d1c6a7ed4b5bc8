// Tables of priority levels for the debug endpoints, with upstream's columns.
#pragma once

#include <string>
#include <vector>

#include "controlplane/apiserver/flowcontrol/level.h"

namespace keelson::apiserver::flowcontrol {

using Levels = std::vector<const Level*>;  // by name

std::string LevelsTable(const Levels& levels);
std::string QueuesTable(const Levels& levels);
std::string RequestsTable(const Levels& levels, bool details);

}  // namespace keelson::apiserver::flowcontrol
