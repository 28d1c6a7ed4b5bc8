// Tables about priority levels for people: columns and their order are upstream's.
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
