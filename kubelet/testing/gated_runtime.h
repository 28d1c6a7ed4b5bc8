// A runtime whose calls pass a gate: what a test wants to go wrong goes wrong there.
#pragma once

#include <memory>
#include <string>

#include "kubelet/cri/runtime.h"

namespace keelson::kubelet {

class RuntimeGate {  // thread safe
 public:
  struct Call {
    std::string name;  // "CreateContainer main"; of other calls the method alone
    bool effect;       // false: a look
  };
  virtual ~RuntimeGate() = default;
  // An error ends the call: Before, it was not made; After, it was, and who made it does not hear of it.
  virtual Result<> Before(const Call& call, std::stop_token stop) = 0;
  virtual Result<> After(const Call&) { return {}; }
};

std::unique_ptr<cri::RuntimeService> GatedRuntime(cri::RuntimeService& real, RuntimeGate& gate);
std::unique_ptr<cri::ImageService> GatedImages(cri::ImageService& real, RuntimeGate& gate);

}  // namespace keelson::kubelet
