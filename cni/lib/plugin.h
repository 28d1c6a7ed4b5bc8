// The framework of a CNI plugin: reads the environment and the configuration, calls the verb, prints the
// result.
//
//   int main(int, char** argv) { return PluginMain(argv[0], {{"loopback", LoopbackPlugin()}, ...}); }
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>

#include "cni/lib/error.h"
#include "cni/lib/result.h"

namespace keelson::cni {

// A container's interface. GC lists the ones to keep.
struct Attachment {
  std::string container_id, ifname;
  auto operator<=>(const Attachment&) const = default;
};

struct Plugin;
// The plugins in a program, by the name under which it is called.
using PluginTable = std::map<std::string_view, Plugin>;

// One call. `command` decides which fields are set; they have been validated for it.
struct Request {
  std::string command;  // ADD DEL CHECK STATUS GC VERSION
  std::string container_id, netns, ifname;
  std::map<std::string, std::string> args;  // CNI_ARGS
  std::string path;                         // CNI_PATH
  std::string config_text;                  // as received on stdin
  boost::json::object config;
  std::string version, network, type;  // cniVersion, name, type
  std::optional<AddResult> prev_result;
  std::vector<Attachment> valid_attachments;  // for GC
  const PluginTable* siblings = nullptr;      // in the same program; see delegate.h
};

struct Plugin {
  std::string about;
  std::function<Outcome<AddResult>(const Request&)> add;
  std::function<Outcome<>(const Request&)> del;
  std::function<Outcome<>(const Request&)> check;
  std::function<Outcome<>(const Request&)> status = {};  // absent: always available
  std::function<Outcome<>(const Request&)> gc = {};      // absent: nothing to do
};

using Environment = std::map<std::string, std::string>;

struct Reply {
  int exit_code = 0;
  std::string output;  // for stdout
};

// Runs one command. Errors become a JSON reply with a non-zero exit code.
Reply RunPlugin(const Plugin& plugin, const Environment& environment, const std::string& config,
                const PluginTable* siblings = nullptr);
// Runs the plugin whose name is the last part of `called_as` (argv[0]), with the process's own environment,
// stdin and stdout.
int PluginMain(const char* called_as, const PluginTable& plugins);

}  // namespace keelson::cni
