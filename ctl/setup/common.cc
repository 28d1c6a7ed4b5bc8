#include "ctl/setup/common.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include "ctl/host/paths.h"
#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/component/flag_adder.h"

namespace keelson::ctl {
namespace {

// The source address of packets to the outside. Sends nothing. Empty: there is no way there.
std::string DefaultAddress() {
  UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  ::inet_pton(AF_INET, "192.0.2.1", &address.sin_addr);
  socklen_t size = sizeof address;
  char text[INET_ADDRSTRLEN];
  if (!fd || ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return "";
  }
  return ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
}

}  // namespace

void AddSetupOptions(CLI::App& verb, SetupOptions& options, bool for_node) {
  const component::FlagAdder add{verb};
  add("--config", options.config_file, "File of kubeadm's configuration documents");
  add("--rootfs", options.root, "Directory that stands for the root of the host's files");
  add("--cri-socket", options.cri_socket, "Socket of the container runtime; default: the one that is found");
  add("--ignore-preflight-errors", options.ignored_checks,
      "Checks whose errors are warnings: IsPrivilegedUser,Swap; all: every check's");
  add("--skip-phases", options.skipped_phases, "Phases to leave out");
  add("--dry-run", options.dry_run, "Change nothing; say what would be done");
  if (for_node) add("--node-name", options.node_name, "Name of the Node; default: the host's name");
}

void AddControlPlaneFlags(CLI::App& verb, SetupOptions& options) {
  verb.add_option("--control-plane-mode", options.control_plane_mode,
                  "How kube-controlplane runs: systemd, as a unit, or static-pods, as a static pod of the "
                  "kubelet; default: as this machine has it, else systemd")
      ->check(CLI::IsMember({"systemd", "static-pods"}));
  const component::FlagAdder add{verb};
  add("--control-plane-image", options.control_plane_image,
      "Image of the static pod, which needs to have nothing: the program is the package's; default: the "
      "image of the runtime's sandboxes");
}

void AddPhaseVerb(CLI::App& verb, SetupOptions& options, const std::string& phases) {
  CLI::App* phase = verb.add_subcommand("phase", "Run one phase alone");
  phase->fallthrough();
  phase->add_option("name", options.phase, "The phase, and its sub-phase: certs apiserver")->required();
  phase->footer("Phases:\n" + phases);
}

std::string PhaseName(const SetupOptions& options) {
  std::vector<std::string> words = options.phase;
  if (!words.empty() && words.back() == "all") words.pop_back();
  return Join(words, "/");
}

MachineFacts LookAtMachine(const Host& host) {
  MachineFacts out;
  utsname names{};
  if (::uname(&names) == 0) out.host_name = Lower(names.nodename);
  out.default_address = DefaultAddress();
  for (const char* socket : paths::kRuntimeSockets) {
    if (host.Exists(socket)) out.cri_sockets.emplace_back(socket);
  }
  return out;
}

Result<ConfigDocuments> ReadConfigFile(const std::string& path) {
  if (path.empty()) return ConfigDocuments{};
  KEELSON_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Result<ConfigDocuments> documents = SplitDocuments(text);
  if (!documents) return documents.error().Wrap(path);
  return documents;
}

Result<> RefuseMixed(const CLI::App& verb, const std::vector<std::string>& flags) {
  if (verb.count("--config") == 0) return {};
  std::vector<std::string> given;
  for (const std::string& flag : flags) {
    if (verb.count(flag) > 0) given.push_back(flag.substr(2));
  }
  if (given.empty()) return {};
  return Error(Code::kInvalid, "can not mix '--config' with arguments [" + Join(given, " ") + "]");
}

void TellWarnings(const std::vector<std::string>& warnings, std::ostream& err) {
  for (const std::string& warning : warnings) err << "[config] WARNING: " << warning << "\n";
}

ChosenHost::ChosenHost(const std::string& root, bool dry_run, std::ostream& out) : real_(NewHost(root)) {
  if (dry_run) dry_ = NewDryRunHost(*real_, out);
}

}  // namespace keelson::ctl
