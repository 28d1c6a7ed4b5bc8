// nodectl pull
#include <termios.h>
#include <unistd.h>

#include <iostream>

#include "ctl/cri/images.h"
#include "ctl/cri/lifecycle.h"
#include "ctl/cri/verbs/add.h"
#include "ctl/cri/verbs/pull_flags.h"
#include "lib/component/flag_adder.h"

namespace keelson::ctl {
namespace {

struct PullOptions {
  std::string image, pod_config;
  std::vector<std::string> annotations;
  PullFlags flags;
};

Result<std::string> AskPassword() {
  termios shown{};
  if (::tcgetattr(STDIN_FILENO, &shown) != 0) {
    return Error(Code::kInvalid, "--username asks for the password on a terminal: use --creds without one");
  }
  termios hidden = shown;
  hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  std::cout << "Enter Password:" << std::flush;
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
  std::string password;
  const bool read = static_cast<bool>(std::getline(std::cin, password));
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
  std::cout << "\n";
  if (!read) return Error(Code::kInvalid, "no password");
  return password;
}

Result<int> Pull(CriClient& client, const PullOptions& options) {
  cri::PullImageRequest request;
  request.mutable_image()->set_image(options.image);
  KEELSON_ASSIGN_OR_RETURN(const auto annotations, ParseLabels(options.annotations));
  request.mutable_image()->mutable_annotations()->insert(annotations.begin(), annotations.end());
  KEELSON_RETURN_IF_ERROR(options.flags.Authenticate(request));
  if (!options.pod_config.empty()) {
    KEELSON_ASSIGN_OR_RETURN(*request.mutable_sandbox_config(), ReadPodConfig(options.pod_config));
  }
  KEELSON_ASSIGN_OR_RETURN(const std::string reference, PullImage(client, request, options.flags.Timeout()));
  std::cout << "Image is up to date for " << reference << "\n";
  return 0;
}

}  // namespace

void PullFlags::AddTo(CLI::App& verb) {
  verb.add_option("--creds", creds, "USERNAME[:PASSWORD] for the registry")->envname("CRICTL_CREDS");
  verb.add_option("--auth", auth, "USERNAME[:PASSWORD] for the registry, in base64")->envname("CRICTL_AUTH");
  verb.add_option("-u,--username", username, "User of the registry; asks for the password");
  component::FlagAdder{verb}("--pull-timeout", timeout, "How long a pull may take; 0s: without an end")
      ->envname("CRICTL_PULL_TIMEOUT");
}

Result<> PullFlags::Authenticate(cri::PullImageRequest& request) const {
  if (!username.empty()) {
    KEELSON_ASSIGN_OR_RETURN(const std::string password, AskPassword());
    request.mutable_auth()->set_username(username);
    request.mutable_auth()->set_password(password);
    return {};
  }
  KEELSON_ASSIGN_OR_RETURN(const cri::AuthConfig given, PullAuth(creds, auth));
  // Runtimes take empty credentials for wrong ones.
  if (given.ByteSizeLong() > 0) *request.mutable_auth() = given;
  return {};
}

std::chrono::milliseconds PullFlags::Timeout() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(timeout);
}

void AddCriPull(const CriVerbs& verbs) {
  auto options = std::make_shared<PullOptions>();
  CLI::App* verb = verbs.Add("pull", "Pull an image from a registry",
                             [options](CriClient& client) { return Pull(client, *options); });
  verb->add_option("IMAGE", options->image, "The image: NAME[:TAG|@DIGEST]")->required();
  options->flags.AddTo(*verb);
  verb->add_option("-a,--annotation", options->annotations,
                   "Annotation of the pull, KEY=VALUE; may be repeated");
  verb->add_option("--pod-config", options->pod_config,
                   "Configuration of the pod to pull for, in JSON or YAML");
}

}  // namespace keelson::ctl
