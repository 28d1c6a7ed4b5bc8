// The frame of a CNI plugin: reads the environment and the configuration, calls the verb, prints the answer.
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

// A container's interface: what GC is told to keep.
struct Attachment {
  std::string container_id, ifname;
  auto operator<=>(const Attachment&) const = default;
};

struct Plugin;
// The plugins that a program consists of, by the name that it is called by.
using PluginTable = std::map<std::string_view, Plugin>;

// One call. Which fields are set depends on the command; they have been validated for it.
struct Request {
  std::string command;  // ADD DEL CHECK STATUS GC VERSION
  std::string container_id, netns, ifname;
  std::map<std::string, std::string> args;  // CNI_ARGS
  std::string path;                         // CNI_PATH
  std::string config_text;                  // as it came on stdin
  boost::json::object config;
  std::string version, network, type;  // cniVersion, name, type
  std::optional<AddResult> prev_result;
  std::vector<Attachment> valid_attachments;  // GC
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

Reply RunPlugin(const Plugin& plugin, const Environment& environment, const std::string& config,
                const PluginTable* siblings = nullptr);
// The same with the process's own environment, stdin and stdout, for the plugin that `called_as` (argv[0])
// ends with.
int PluginMain(const char* called_as, const PluginTable& plugins);

}  // namespace keelson::cni
