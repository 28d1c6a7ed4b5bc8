#include "kubelet/volume/programs.h"

#include <stdlib.h>
#include <unistd.h>

#include "lib/base/file.h"

namespace keelson::kubelet {

namespace {

// The program's output, from a private file.
class OutputFile {
 public:
  OutputFile() {
    if (int fd = ::mkstemp(path_); fd >= 0) ::close(fd);
  }
  ~OutputFile() { (void)RemoveFile(path_); }
  const char* path() const { return path_; }
  std::string Text() const { return ReadFile(path_).value_or(""); }

 private:
  char path_[32] = "/tmp/kubelet-mount.XXXXXX";
};

}  // namespace

Result<ProgramEnd> RunProgram(const std::vector<std::string>& argv, std::stop_token stop,
                              std::chrono::milliseconds patience) {
  OutputFile output;
  event::ProcessOptions options;
  options.argv = argv;
  options.output_file = output.path();
  KEELSON_ASSIGN_OR_RETURN(auto process, event::Process::Start(options));
  auto status = process.Wait(std::move(stop), patience);
  return ProgramEnd{std::move(status), output.Text()};
}

}  // namespace keelson::kubelet
