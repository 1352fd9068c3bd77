// On the first device that Vulkan has: makes fifty buffers with memory, fills them by commands, and takes them away.
#include <stdint.h>
#include <stdio.h>

#include "blockyard_vulkan.h"

enum { buffers = 50, bytes = 65536 };

static int check(VkResult result, const char* what) {
  if (result != VK_SUCCESS) fprintf(stderr, "%s failed: %d\n", what, (int)result);
  return result == VK_SUCCESS;
}
#define CHECK(call) \
  if (!check(call, #call)) return 1

int main(void) {
  const VkAllocationCallbacks* const ours = by_vulkan_callbacks();
  const VkInstanceCreateInfo of_instance = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  VkInstance instance;
  CHECK(vkCreateInstance(&of_instance, ours, &instance));
  uint32_t count = 1;
  VkPhysicalDevice physical;
  if (vkEnumeratePhysicalDevices(instance, &count, &physical) < 0 || count == 0) return 2;
  const float priority = 1;
  const VkDeviceQueueCreateInfo of_queue = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
  const VkDeviceCreateInfo of_device = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1, .pQueueCreateInfos = &of_queue};
  VkDevice device;
  CHECK(vkCreateDevice(physical, &of_device, ours, &device));
  VkQueue queue;
  vkGetDeviceQueue(device, 0, 0, &queue);

  const VkCommandPoolCreateInfo of_pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  VkCommandPool pool;
  CHECK(vkCreateCommandPool(device, &of_pool, ours, &pool));
  const VkCommandBufferAllocateInfo of_commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                   .commandPool = pool,
                                                   .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                                   .commandBufferCount = 1};
  VkCommandBuffer commands;
  CHECK(vkAllocateCommandBuffers(device, &of_commands, &commands));
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  CHECK(vkBeginCommandBuffer(commands, &begin));

  VkBuffer buffer[buffers];
  VkDeviceMemory memory[buffers];
  by_tag_push("level");
  for (int i = 0; i < buffers; ++i) {
    const VkBufferCreateInfo of_buffer = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = bytes, .usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    CHECK(vkCreateBuffer(device, &of_buffer, ours, &buffer[i]));
    VkMemoryRequirements needed;
    vkGetBufferMemoryRequirements(device, buffer[i], &needed);
    const VkMemoryAllocateInfo of_memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                            .allocationSize = needed.size};
    CHECK(vkAllocateMemory(device, &of_memory, ours, &memory[i]));
    CHECK(vkBindBufferMemory(device, buffer[i], memory[i], 0));
    vkCmdFillBuffer(commands, buffer[i], 0, VK_WHOLE_SIZE, 0x01010101u * (uint32_t)i);
  }
  by_tag_pop();
  CHECK(vkEndCommandBuffer(commands));
  const VkSubmitInfo submission = {
      .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
  CHECK(vkQueueSubmit(queue, 1, &submission, VK_NULL_HANDLE));
  CHECK(vkQueueWaitIdle(queue));
  int filled = 0;
  for (int i = 0; i < buffers; ++i) {
    void* mapped;
    CHECK(vkMapMemory(device, memory[i], 0, VK_WHOLE_SIZE, 0, &mapped));
    filled += ((const unsigned char*)mapped)[bytes - 1] == i;
    vkUnmapMemory(device, memory[i]);
    vkDestroyBuffer(device, buffer[i], ours);
    vkFreeMemory(device, memory[i], ours);
  }
  vkDestroyCommandPool(device, pool, ours);
  vkDestroyDevice(device, ours);
  vkDestroyInstance(instance, ours);
  printf("%d buffers filled\n", filled);
  return 0;
}
